"""Scrapes as the Collector's Prometheus receiver does, and sends OTLP.

    scrape.py collector.yaml

Reads the part of a Collector's configuration that names targets and the
endpoint, so that the lab needs no Collector. Names, types, resource attributes
and start times are those of the receiver: a counter keeps its _total, a
histogram loses the suffixes of its series, the resource is job and instance.
"""

import math
import os
import re
import signal
import sys
import threading
import time
import urllib.request

import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from prometheus_client.parser import text_string_to_metric_families

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
TIMEOUT_SECONDS = 10
LIMIT_BYTES = 16 << 20
SCOPE = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"


def load(path):
    """Returns (job, target, interval in seconds) for each target, and the endpoint."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"\$\{env:(\w+)\}", lambda m: os.environ[m[1]], f.read())
    config = yaml.safe_load(text)
    jobs = []
    for job in config["receivers"]["prometheus"]["config"]["scrape_configs"]:
        for static in job["static_configs"]:
            for target in static["targets"]:
                jobs.append((job["job_name"], target, float(job["scrape_interval"].removesuffix("s"))))
    return jobs, config["exporters"]["otlphttp"]["endpoint"]


def attributes(labels):
    """Returns labels as OTLP attributes."""
    return [KeyValue(key=k, value=AnyValue(string_value=v)) for k, v in labels.items()]


class Target:
    """One target: what it is called and when it was first seen."""

    def __init__(self, job, address, endpoint):
        self.job, self.address, self.endpoint = job, address, endpoint
        self.first = None

    def scrape(self):
        """Reads the target once and sends what it says, or that it is down."""
        began = time.time()
        try:
            with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=TIMEOUT_SECONDS) as r:
                body = r.read(LIMIT_BYTES + 1)
            if len(body) > LIMIT_BYTES:
                raise ValueError(f"the exposition is larger than {LIMIT_BYTES} bytes")
            families, up = list(text_string_to_metric_families(body.decode())), 1
        except (OSError, ValueError) as e:
            print(f"cannot scrape {self.address}: {e}", file=sys.stderr)
            families, up = [], 0
        now = int(began * 1e9)
        self.first = self.first or now
        self.send(self.request(families, now, {"up": up, "scrape_duration_seconds": time.time() - began}))

    def request(self, families, now, own):
        """Returns one OTLP request with all families and the scraper's own gauges."""
        req = ExportMetricsServiceRequest()
        rm = req.resource_metrics.add()
        host, _, port = self.address.rpartition(":")
        resource = {
            "service.name": self.job,
            "service.instance.id": self.address,
            "server.port": port,
            "url.scheme": "http",
        }
        if host not in ("localhost", "127.0.0.1", "[::1]"):
            resource["server.address"] = host
        rm.resource.attributes.extend(attributes(resource))
        sm = rm.scope_metrics.add()
        sm.scope.name = SCOPE
        for family in families:
            self.family(sm, family, now)
        for name, value in own.items():
            point = sm.metrics.add(name=name).gauge.data_points.add(time_unix_nano=now)
            point.as_double = value
        return req

    def family(self, sm, family, now):
        """Appends one family."""
        if family.type in ("histogram", "summary"):
            self.distribution(sm, family, now)
            return
        if not family.samples:
            return
        metric = sm.metrics.add(name=family.samples[0].name, description=family.documentation)
        if family.type == "counter":
            metric.sum.is_monotonic = True
            metric.sum.aggregation_temporality = CUMULATIVE
        points = metric.sum.data_points if family.type == "counter" else metric.gauge.data_points
        for sample in family.samples:
            point = points.add(time_unix_nano=now, as_double=sample.value)
            if family.type == "counter":
                point.start_time_unix_nano = self.first
            point.attributes.extend(attributes(sample.labels))

    def distribution(self, sm, family, now):
        """Appends a histogram or a summary: one point for each set of labels."""
        own = "le" if family.type == "histogram" else "quantile"
        metric = sm.metrics.add(name=family.name, description=family.documentation)
        data = metric.histogram if family.type == "histogram" else metric.summary
        if family.type == "histogram":
            data.aggregation_temporality = CUMULATIVE
        groups = {}
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k != own}
            group = groups.setdefault(tuple(sorted(labels.items())), {"labels": labels, "parts": []})
            if own in sample.labels:
                group["parts"].append((float(sample.labels[own]), sample.value))
            else:
                group[sample.name[len(family.name) :]] = sample.value
        for group in groups.values():
            point = data.data_points.add(
                time_unix_nano=now,
                start_time_unix_nano=self.first,
                count=int(group.get("_count", 0)),
                sum=group.get("_sum", 0.0),
            )
            point.attributes.extend(attributes(group["labels"]))
            if family.type == "summary":
                for quantile, value in group["parts"]:
                    point.quantile_values.add(quantile=quantile, value=value)
                continue
            before = 0
            for bound, count in sorted(group["parts"]):
                point.bucket_counts.append(int(count) - before)
                before = int(count)
                if not math.isinf(bound):
                    point.explicit_bounds.append(bound)

    def send(self, req):
        """Sends a request; what the recorder does not take is said."""
        post = urllib.request.Request(
            f"{self.endpoint}/v1/metrics",
            req.SerializeToString(),
            {"Content-Type": "application/x-protobuf"},
        )
        try:
            with urllib.request.urlopen(post, timeout=TIMEOUT_SECONDS) as r:
                told = ExportMetricsServiceResponse.FromString(r.read()).partial_success
            if told.rejected_data_points or told.error_message:
                print(f"{told.rejected_data_points} points were refused: {told.error_message}", file=sys.stderr)
        except OSError as e:
            print(f"cannot send to {self.endpoint}: {e}", file=sys.stderr)


def main():
    """Scrapes until it is told to stop."""
    jobs, endpoint = load(sys.argv[1])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    targets = [(Target(job, address, endpoint), interval) for job, address, interval in jobs]

    def loop(target, interval):
        while not stop.wait(interval):
            target.scrape()

    threads = [threading.Thread(target=loop, args=t) for t in targets]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if __name__ == "__main__":
    main()
