"""A small service to ask: HTTP entry, a LangChain chain, a model server behind it.

Everything about telemetry is what an application would have: the OpenTelemetry
SDK set up by its usual environment variables, FastAPI and the HTTP client
instrumented, and LangChain instrumented by one of the instrumentations there
are. Nothing here knows inquest.
"""

import argparse

import uvicorn
from fastapi import FastAPI, Request
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor, HTTPXClientInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic import BaseModel


class Ask(BaseModel):
    """What a client asks."""

    question: str
    stream: bool = False


def telemetry():
    """Sets up the SDK; service and endpoint come from OTEL_* variables."""
    traces = TracerProvider()
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(traces)
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    metrics.set_meter_provider(meters)
    return traces, meters


def instrument(dialect):
    """Instruments LangChain."""
    if dialect == "openinference":
        from openinference.instrumentation.langchain import LangChainInstrumentor
    elif dialect == "openllmetry":
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor as LangChainInstrumentor
    else:
        from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor
    LangChainInstrumentor().instrument()


def service(model_url, model):
    """Returns the application."""
    app = FastAPI()
    prompt = ChatPromptTemplate.from_messages([("system", "Answer in one sentence."), ("human", "{question}")])
    llm = ChatOpenAI(
        model=model,
        base_url=model_url,
        api_key="none",
        temperature=0.7,
        top_p=0.9,
        max_tokens=24,
        seed=7,
        stream_usage=True,
        max_retries=0,
    )

    @app.post("/ask")
    async def ask(body: Ask, request: Request):
        # The model server is told the request's id as it came.
        chain = prompt | llm.bind(extra_headers={"X-Request-Id": request.headers["x-request-id"]})
        if body.stream:
            answer = None
            async for piece in chain.astream({"question": body.question}):
                answer = piece if answer is None else answer + piece
        else:
            answer = await chain.ainvoke({"question": body.question})
        return {
            "answer": answer.content,
            "usage": answer.usage_metadata,
            "metadata": answer.response_metadata,
            "trace_id": trace.format_trace_id(trace.get_current_span().get_span_context().trace_id),
        }

    @app.get("/healthz")
    async def healthz():
        return "ok"

    return app


def main():
    """Serves until it is told to stop; then sends what is left."""
    args = argparse.ArgumentParser()
    args.add_argument("--dialect", choices=["openinference", "openllmetry", "otel"], required=True)
    args.add_argument("--port", type=int, required=True)
    args.add_argument("--model-url", required=True)
    args.add_argument("--model", required=True)
    args = args.parse_args()
    traces, meters = telemetry()
    instrument(args.dialect)
    # openai speaks through httpx2 from version 3 on, through httpx before.
    HTTPX2ClientInstrumentor().instrument()
    HTTPXClientInstrumentor().instrument()
    app = service(args.model_url, args.model)
    FastAPIInstrumentor.instrument_app(app, excluded_urls="healthz")
    try:
        uvicorn.run(app, host="127.0.0.1", port=args.port, log_level="warning")
    finally:
        traces.shutdown()
        meters.shutdown()


if __name__ == "__main__":
    main()
