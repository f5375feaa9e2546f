"""A service of a web application and a Celery worker, as a user would write it. Run by test_service."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

from celery import Celery
from fastapi import FastAPI

import inquest
import inquest.celery
import inquest.fastapi
import inquest.logging

inquest.init(os.environ["SERVICE"])
if os.environ.get("CARRY", "1") == "1":
    inquest.celery.instrument()
logger = logging.getLogger("shop")
inquest.logging.install(logging.getLogger() if os.environ.get("ROOT") else logger)
events = inquest.EventLogger(biz_type="search_qa", model_version="m@1")

broker = os.environ["BROKER"]
queue = Celery("shop", broker=broker)
queue.conf.broker_connection_retry_on_startup = True
queue.conf.task_ignore_result = True
if broker.startswith("filesystem:"):
    folder = os.environ["BROKER_FOLDER"]
    queue.conf.broker_transport_options = {
        "data_folder_in": folder,
        "data_folder_out": folder,
        "control_folder": folder + ".control",
    }

web = FastAPI()
inquest.fastapi.instrument(web)


@web.post("/ask/{number}")
async def ask(number: int, text: str) -> dict[str, Any]:
    await asyncio.to_thread(events.ingress, text, user_id=f"u-{number}")
    logger.info("asked %d", number)
    await asyncio.get_running_loop().run_in_executor(None, tokenize, text)
    await asyncio.to_thread(infer.delay, number)
    await asyncio.to_thread(events.egress, output="queued")
    return {"number": number}


def tokenize(text: str) -> None:
    logger.info("tokenizing in a thread")
    events.preprocess(length=len(text.split()), truncated=False, truncation_side="none", max_length=512)


@queue.task(bind=True, max_retries=1)
def infer(self: Any, number: int) -> None:
    logger.info("inferring %d", number)
    if number % 5 == 1 and not self.request.retries:
        raise self.retry(countdown=0, exc=TimeoutError("the model is slow"))
    start = time.monotonic()
    events.inference(stages={"generate": time.monotonic() - start}, input=[1, 2], output=[0.5])
    thread = inquest.Thread(target=logger.info, args=("scored in a thread",))
    thread.start()
    thread.join()
    finish.delay(number)


@queue.task
def finish(number: int) -> None:
    events.postprocess(output="done")
    logger.info("finished %d", number)
    if number % 5 == 2:
        raise ValueError("cannot deliver")
