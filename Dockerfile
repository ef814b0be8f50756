ARG BASE_IMAGE=python:3.11-slim
ARG DEVICE=cuda

# The service in a container. docs/deploy.md describes how to run it; scripts/image.sh builds and checks it.
#   docker build .                                        for GPUs: torch with CUDA, from the package index
#   docker build --build-arg DEVICE=cpu .                 for CPUs: without torch
#   docker build --build-arg DEVICE=cpu-torch --build-arg TORCH_INDEX=URL .
#                                                         for CPUs with torch, which training and import need
#   docker build --target demo .                          includes a model that is trained during the build
#   docker build --target baked .                         includes the models of ./models, or of the folder MODELS
# TORCH_INDEX is PyTorch's index of builds for CPUs. The target `demo` needs it, too, if DEVICE is cpu.
# The build arguments VERSION and REVISION become labels.
# --secret id=pip-conf,src=pip.conf passes settings to pip, such as an index; no layer stores them.

# The locked dependencies of the service. pip takes the whole list from one index, compares the hash of every file, and
# resolves nothing. The environment has no pip; the pip of the base image fills it.
FROM ${BASE_IMAGE} AS packages
WORKDIR /build
COPY requirements requirements
RUN python -m venv --without-pip /venv
RUN --mount=type=secret,id=pip-conf,target=/etc/pip.conf \
    python -m pip --python /venv/bin/python install --no-cache-dir --no-deps --require-hashes \
        --requirement requirements/service.lock \
    && python -m pip --python /venv/bin/python check \
    && find /venv/lib -depth -type d -name tests -exec rm -rf {} +

# The same with torch.
FROM packages AS torch
ARG DEVICE
ARG TORCH_INDEX=""
RUN --mount=type=secret,id=pip-conf,target=/etc/pip.conf \
    python -m pip --python /venv/bin/python install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
        ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} --requirement "requirements/torch-${DEVICE%-torch}.lock" \
    && python -m pip --python /venv/bin/python install --no-cache-dir --no-deps --require-hashes \
        --requirement requirements/torch.lock \
    && python -m pip --python /venv/bin/python check \
    && rm -rf /venv/lib/python*/site-packages/torch/include /venv/lib/python*/site-packages/torch/test \
    && find /venv/lib/python*/site-packages/torch/bin -type f ! -name torch_shm_manager -delete

# The packages of the service for each DEVICE.
FROM packages AS packages-cpu
FROM torch AS packages-cpu-torch
FROM torch AS packages-cuda
# hadolint ignore=DL3006
FROM packages-${DEVICE} AS environment

# The wheel of the project with kernels for every instruction set, and the bill of materials.
FROM environment AS build
WORKDIR /build
# hadolint ignore=DL3008
RUN command -v c++ > /dev/null \
    || { apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*; }
RUN --mount=type=secret,id=pip-conf,target=/etc/pip.conf \
    python -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/release.lock
COPY LICENSE README.md pyproject.toml ./
COPY mt mt
COPY service service
COPY scripts/packaging scripts/packaging
COPY scripts/recipes scripts/recipes
RUN /tools/bin/pip install --no-cache-dir --no-index --no-deps --no-build-isolation --target /app . \
    && ls /app/mt/kernels/prebuilt/plain.so \
    && PYTHONPATH=/app /tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
        --output-file /app/sbom.cdx.json /venv/bin/python

FROM ${BASE_IMAGE} AS runtime-cpu
ARG BASE_IMAGE
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="mt-service" \
      org.opencontainers.image.description="Translation by models of your own, over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
RUN find / -xdev -depth \( -name pip -o -name 'pip[0-9-]*' -o -name 'setuptools*' -o -name 'wheel-*' -o -name ensurepip \
        -o -name python-wheels \) -not -path '/proc/*' -exec rm -rf {} + \
    && mkdir /models && install --directory --owner 10001 --group 10001 --mode 700 /data
COPY --from=environment /venv /venv
COPY --from=build /app /app
# The root file system may be read-only: everything is written to /tmp, and to /data if MT_DATABASE is in it.
ENV PATH=/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    MT_HOST=0.0.0.0 \
    MT_MODELS=/models
# While /models is empty, the service serves the starter model of the package.
USER 10001:10001
EXPOSE 8000
# Several models on a cold disk load for minutes.
HEALTHCHECK --interval=10s --timeout=5s --start-period=300s CMD ["python", "-m", "service.probe"]
ENTRYPOINT ["python", "-m", "service"]

FROM runtime-cpu AS runtime-cpu-torch
# Only this image shows the GPUs of a host to its containers.
FROM runtime-cpu AS runtime-cuda
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# hadolint ignore=DL3006
FROM runtime-${DEVICE} AS runtime

FROM torch AS training
COPY --from=build /app /app
WORKDIR /train
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app MT_DATA=data
RUN python -m mt fetch phrasebook \
    && python -m mt train /app/mt/recipes/phrasebook.toml --device cpu --processes 2

FROM runtime AS demo
COPY --from=training /app/mt/bundled/starter /models/starter
COPY --from=training /train/runs/phrasebook-en-de/model /models/phrasebook-en-de
ENV MT_PREFERRED_MODELS=starter

FROM runtime AS baked
ARG MODELS=models
COPY --chown=10001:10001 ${MODELS} /models

FROM runtime AS service
