# Two stages: the first builds the wheel, the second has it and no compiler.
#   docker build -t windtunnel .
#   docker run --rm -v "$PWD:/here" -w /here windtunnel plan dbrx-3072-h100 -o out/plan
FROM debian:12 AS build
WORKDIR /source
COPY cmake/debian-packages.txt cmake/
RUN apt-get update && grep -v '^#' cmake/debian-packages.txt | xargs apt-get install -y --no-install-recommends git
COPY . .
RUN cmake/wheel.sh /wheels

FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN python3 -m venv /opt/windtunnel && /opt/windtunnel/bin/pip install --no-cache-dir --no-index /wheels/*.whl
ENV PATH=/opt/windtunnel/bin:$PATH
ENTRYPOINT ["windtunnel"]
