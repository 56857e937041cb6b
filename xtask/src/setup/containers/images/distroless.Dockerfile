FROM debian:bookworm-slim AS parts
RUN apt-get update && apt-get download base-files libc6 libgcc-s1 && \
    for package in *.deb; do dpkg -x "$package" /parts; done && \
    mkdir -p /parts/etc/ssl/certs /parts/home/nonroot /parts/tmp && chmod 1777 /parts/tmp && \
    cp /etc/ssl/certs/ca-certificates.crt /parts/etc/ssl/certs/ && \
    echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' > /parts/etc/passwd && \
    echo 'nonroot:x:65532:' > /parts/etc/group

FROM scratch
COPY --from=parts /parts /
USER 65532
WORKDIR /home/nonroot
