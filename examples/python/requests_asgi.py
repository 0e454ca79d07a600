# SPDX-License-Identifier: BSD-2-Clause
"""The same under asyncio: what a request's own steps did, and how long it was suspended.

    uvicorn requests_asgi:app &
    wrk -d 5 http://127.0.0.1:8000/await
"""
import asyncio
import logging
import time

import prcb.web

logging.basicConfig(format="%(message)s")


async def awaits():
    await asyncio.sleep(0.03)


async def blocks():
    time.sleep(0.03)  # a mistake: the loop serves nobody meanwhile


WAYS = {"/await": awaits, "/block": blocks}


async def plain(scope, receive, send):
    if scope["type"] != "http":
        return
    way = WAYS.get(scope["path"])
    if way:
        await way()
    await send({"type": "http.response.start", "status": 200 if way else 404,
                "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"done\n"})


app = prcb.web.ASGI(plain, slow=0.02)
