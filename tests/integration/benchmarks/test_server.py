from __future__ import annotations

import asyncio

from benchmarks.server import processor_seconds, slow_wire
from tests.postgres import PostgresServer


async def test_a_slow_wire_loses_nothing_and_keeps_the_order() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1000):
            writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sent = b"".join(number.to_bytes(4, "big") for number in range(50_000))
    async with slow_wire(f"postgresql://me:pw@127.0.0.1:{port}/db", 0.001) as url:
        assert url.startswith("postgresql://me:pw@127.0.0.1:")
        assert url.endswith("/db")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[3][:-3]))
        writer.write(sent)
        async with asyncio.timeout(120):
            assert await reader.readexactly(len(sent)) == sent
        writer.close()
    server.close()


def test_the_servers_own_work_is_counted(own_postgres: PostgresServer) -> None:
    import psycopg

    with psycopg.connect(own_postgres.admin_url()) as connection:
        before = processor_seconds(own_postgres)
        connection.execute("SELECT sum(n) FROM generate_series(1, 300000) AS n")
        assert processor_seconds(own_postgres) > before
