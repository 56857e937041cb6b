# The service. From the root of the repository:
#
#   docker build --tag sluicegate/sluicegate .
#   docker run --network host --volume "$PWD/sluicegate.yaml":/etc/sluicegate/sluicegate.yaml:ro sluicegate/sluicegate
#
# Without the host's network, 127.0.0.1 is the container alone: `listen` is then 0.0.0.0:8080, and `store.url` is where
# containers reach Redis, as in compose/sluicegate.yaml.
#
# For another architecture, compiled on this one: docker buildx build --platform linux/arm64 --tag … .
# It needs BuildKit, which Docker has by default since 23.0 (before: DOCKER_BUILDKIT=1).

FROM --platform=$BUILDPLATFORM rust:1.95-slim-bookworm AS build
ARG BUILDARCH
ARG TARGETARCH
# The compiler's name for the target, and what compiles and links for one that is another than this machine's.
RUN case "$TARGETARCH" in \
      amd64) cpu=x86_64 gcc=gcc-x86-64-linux-gnu ;; \
      arm64) cpu=aarch64 gcc=gcc-aarch64-linux-gnu ;; \
      *) echo "error: no target for TARGETARCH=$TARGETARCH: use amd64 or arm64" >&2; exit 1 ;; \
    esac; \
    echo "$cpu-unknown-linux-gnu" > /target; \
    if [ "$TARGETARCH" != "$BUILDARCH" ]; then \
      apt-get update && \
      apt-get install --yes --no-install-recommends "$gcc" "libc6-dev-$TARGETARCH-cross" && \
      rm -rf /var/lib/apt/lists/* && \
      rustup target add "$cpu-unknown-linux-gnu"; \
    fi
ENV CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc
WORKDIR /src
COPY . .
# Both folders stay on the machine that builds: the next build compiles what changed. Cargo goes by the times of files, and
# those of another checkout may be older than what was last compiled here, so that they count as compiled already.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,id=sluicegate-target,target=/src/target \
    find . -path ./target -prune -o -type f -exec touch {} + && \
    cargo build --locked --release --bin sluicegate --target "$(cat /target)" && \
    cp "target/$(cat /target)/release/sluicegate" /sluicegate

# A C library, certificates of authorities and a user without rights: no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="Sluicegate" \
      org.opencontainers.image.description="A distributed rate limiter for services behind Envoy: the service" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /sluicegate /usr/local/bin/sluicegate
EXPOSE 8080 8081
# Whether the process answers, not whether it is ready: a store that is gone is no reason to end the service. It asks
# http://127.0.0.1:8080. Where `listen` is a socket, speaks TLS or has another port, set SLUICEGATE_URL in the container to
# what it is, or to the admin listener, which answers this too.
HEALTHCHECK --interval=5s --timeout=3s --retries=3 CMD ["/usr/local/bin/sluicegate", "health"]
ENTRYPOINT ["/usr/local/bin/sluicegate"]
CMD ["serve", "--config", "/etc/sluicegate/sluicegate.yaml"]
