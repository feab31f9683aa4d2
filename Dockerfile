# The gateway and the simulated engines:  docker build -t turnout .
FROM python:3.13-slim AS build
WORKDIR /src
# Everything is installed from the lock files, checked against their hashes.
COPY requirements requirements
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/tools.lock \
    && uv venv --no-cache /opt/turnout \
    && uv pip install --no-cache --python /opt/turnout --compile-bytecode --require-hashes -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY engines engines
RUN hatchling build -t wheel -d dist \
    && uv pip install --no-cache --python /opt/turnout --compile-bytecode --no-deps dist/*.whl

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home turnout
COPY --from=build /opt/turnout /opt/turnout
ENV PATH=/opt/turnout/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
CMD ["turnout", "serve", "--config", "/etc/turnout/turnout.yaml", "--host", "0.0.0.0", "--port", "8080"]
