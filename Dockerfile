# syntax=docker/dockerfile:1
# taskbell as an image: the one binary, a user of its own, a folder for its data. Handlers are native ones of the binary or
# scripts that it runs itself, so nothing else has to be in here. How to run it: docs/operations.md, "In containers".

FROM rust:1.95-trixie AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin taskbell \
    && install -D --strip target/release/taskbell /out/taskbell \
    && install -d /out/data

FROM debian:trixie-slim
# For outgoing TLS; the slim image has none.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/taskbell /usr/local/bin/taskbell
COPY --from=build --chown=10001:10001 /out/data /var/lib/taskbell
# By itself the image keeps all in one SQLite file. A configuration file is mounted and named by TASKBELL_CONFIG.
ENV TASKBELL__SERVER__LISTEN=0.0.0.0:8080 \
    TASKBELL__DATABASE__URL=sqlite:///var/lib/taskbell/taskbell.db \
    TASKBELL__FILES__URL=file:///var/lib/taskbell/files
USER 10001:10001
VOLUME /var/lib/taskbell
EXPOSE 8080
# SIGTERM drains: give `docker stop` more than engine.drain_grace_ms (20 s).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["taskbell", "ready"]
ENTRYPOINT ["taskbell"]
CMD ["serve"]
