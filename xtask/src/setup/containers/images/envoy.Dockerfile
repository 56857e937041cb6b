FROM debian:bookworm-slim
RUN useradd --uid 101 --user-group --no-create-home envoy
COPY envoy /usr/local/bin/envoy
