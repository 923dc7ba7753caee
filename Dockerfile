# The service on a CPU: docker build -t elmokit . && docker run --rm -p 8000:8000 elmokit
FROM python:3.12-slim

# PyTorch's build for CPUs is a tenth of the size of that for GPUs
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu

WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[serve,parquet,index]" && rm -rf /build

RUN useradd --system --no-create-home --shell /usr/sbin/nologin elmokit
USER elmokit
WORKDIR /tmp
EXPOSE 8000

HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]

# exec form: the service itself gets the SIGTERM of docker stop, and finishes what is queued
ENTRYPOINT ["elmokit", "serve", "--host", "0.0.0.0", "--port", "8000"]
