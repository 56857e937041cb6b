FROM debian:bookworm-slim
RUN apt-get update && apt-get download prometheus && dpkg -x prometheus_*.deb /parts && \
    mv /parts/usr/bin/prometheus /usr/local/bin/ && rm -rf /parts ./*.deb /var/lib/apt/lists/*
ENTRYPOINT ["/usr/local/bin/prometheus"]
