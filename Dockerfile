# An image with motet and nothing it does not need, in two stages on Debian 12.
#
#   docker build -t motet .
#   docker run -p 8000:8000 -v $PWD/models:/models:ro motet serve /models/box --host 0.0.0.0
#
# Kernels for GPUs are compiled where the first stage has nvcc, as in every build: name an image of Debian 12 with NVIDIA's
# CUDA toolkit with --build-arg BUILD=... . `docker run --gpus all` has NVIDIA's container toolkit add the driver's libraries.
#
# `make test-shipped` builds it with buildah from a Debian made by debootstrap, runs it and stops it (tests/shipped/image.py).
ARG BUILD=debian:12-slim
FROM ${BUILD} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY . .
RUN make deb DEB=/out

FROM debian:12-slim
COPY --from=build /out/motet_*.deb /tmp/
# The package's user, with a number that every image has: Kubernetes' runAsNonRoot takes no name for an answer.
RUN groupadd --system --gid 8000 motet \
    && useradd --system --uid 8000 --gid 8000 --home-dir /var/lib/motet --shell /usr/sbin/nologin motet \
    && apt-get update \
    && apt-get install -y --no-install-recommends /tmp/motet_*.deb ca-certificates poppler-utils \
    && rm -rf /var/lib/apt/lists/* /tmp/motet_*.deb \
    && install -d -o motet -g motet -m 750 /var/lib/motet /var/cache/motet \
    && ln -sfn /var/cache/motet /var/lib/motet/.cache
USER 8000:8000
WORKDIR /var/lib/motet
# NVIDIA's runtime puts the driver's libraries into containers that ask for these.
ENV HOME=/var/lib/motet MOTET_LOG_FORMAT=json NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=10m CMD ["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["/usr/bin/motet"]
CMD ["serve", "--host", "0.0.0.0"]
