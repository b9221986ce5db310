# An image with motet and nothing it does not need, in two stages on Debian 12.
#
# Built by nobody so far: there was no container runtime where this was written. It runs the commands that `make deb`
# and docs/operations.md run, which are tested; the file itself is not.
#
#   docker build -t motet .
#   docker run -p 8000:8000 -v $PWD/models:/models:ro motet serve /models/box --host 0.0.0.0
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY . .
RUN make deb DEB=/out

FROM debian:12-slim
COPY --from=build /out/motet_*.deb /tmp/
RUN apt-get update \
    && apt-get install -y --no-install-recommends /tmp/motet_*.deb ca-certificates \
    && rm -rf /var/lib/apt/lists/* /tmp/motet_*.deb
USER motet
WORKDIR /var/lib/motet
# The NVIDIA runtime (docker run --gpus all) puts the driver's libraries into containers that ask for these.
ENV HOME=/var/lib/motet MOTET_LOG_FORMAT=json NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=10m CMD ["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["/usr/bin/motet"]
CMD ["serve", "--host", "0.0.0.0"]
