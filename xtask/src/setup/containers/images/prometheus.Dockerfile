FROM debian:bookworm-slim
RUN apt-get update && apt-get download prometheus && dpkg -x prometheus_*.deb / && rm -rf *.deb /var/lib/apt/lists/*
ENTRYPOINT ["/usr/bin/prometheus"]
