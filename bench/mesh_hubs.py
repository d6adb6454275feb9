"""The two kinds of hub that bench/mesh_kills kills: one with a file, which agents reach over HTTP,
and one with a PostgreSQL behind a nats-server, which are killed as well. Each kind begins its
servers, says how hub and agents name them, and reads the hub's rows.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

LINERATE = os.path.abspath(os.environ.get("LINERATE", "target/release/linerate"))
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TLS = f"{ROOT}/testdata/tls"
HUB, HUB_PORT, BROKER_PORT = "127.0.0.1", 5297, 5298
# Those of a user who is let in by docs/nats/nats-server.conf.
HUB_PASSWORD, AGENT_PASSWORD = "of-the-hub", "of-agents"


class Program:
    """One that is killed and begun again."""

    begun = []

    def __init__(self, name, words, program=LINERATE):
        self.name, self.program, self.words, self.process = name, program, words, None
        self.begin()
        self.begun.append(self)

    def begin(self):
        with open(f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen([self.program, *self.words], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()

    def has_ended(self):
        return self.process.poll() is not None


def waits_for(what, holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.5)


def rows(store, agent, more="sent"):
    """Runs that are over, by task and begin: how they ended, why not, their record, and more."""
    base = sqlite3.connect(store, timeout=60)
    tables = base.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'mesh_self'").fetchone()
    # A store that has just been made has none yet.
    found = base.execute(f"SELECT task, start_s, state, reason, record, {more} "
                         "FROM schedule_run AS run WHERE plan = ? AND state <> 'running'",
                         (f"m/{agent}",)).fetchall() if tables[0] else []
    base.close()
    return {(task, start_s): rest for task, start_s, *rest in found}


class File:
    """The hub's store is a file."""

    store = "hub.db"
    hub = ["--store", store]
    agent = ["--join", f"http://{HUB}:{HUB_PORT}"]

    @staticmethod
    def begin():
        return {}

    def rows(self, agent):
        """As of an agent; in the end how often the record is there."""
        return rows(self.store, agent, "(SELECT count(*) FROM record WHERE id = run.record)")

    def wrong(self, agent):
        """What is there twice, in words."""
        sql = ("SELECT count(*), count(DISTINCT json_extract(tags, '$.slot') || name) "
               "FROM record WHERE json_extract(tags, '$.schedule') = ?")
        named, different = self.ask(sql, (f"m/{agent}",))[0]
        return [("records of one run", named, different)] if named != different else []

    def bookings(self):
        return self.ask("SELECT count(*) FROM mesh_booking")[0][0]

    def bookings_without_row(self):
        return self.ask(
            "SELECT agent, task, start_s FROM mesh_booking AS it WHERE start_s < ? AND NOT EXISTS "
            "(SELECT 1 FROM schedule_run AS run WHERE run.plan = 'm/' || it.agent "
            "AND run.task = it.task AND run.start_s = it.start_s)", (int(time.time()) - 60,))

    def ask(self, sql, values=()):
        with contextlib.closing(sqlite3.connect(self.store, timeout=60)) as base:
            return base.execute(sql, values).fetchall()

    def copies(self, _):
        before, after = sqlite3.connect(self.store, timeout=60), sqlite3.connect("copy.db")
        before.backup(after)
        before.close()
        after.close()

    def puts_back(self, programs):
        programs["hub"].kill()
        for end in ("", "-wal", "-shm"):
            if os.path.exists(f"hub.db{end}"):
                os.remove(f"hub.db{end}")
        shutil.copy("copy.db", "hub.db")
        programs["hub"].begin()


class Postgres(Program):
    """A database server in a namespace of processes, whose first it is: none outlives it. It does
    not run as root: in a namespace of users it is another user to itself."""

    def __init__(self):
        found = sorted(os.listdir("/usr/lib/postgresql"), key=float)
        self.programs = f"/usr/lib/postgresql/{found[-1]}/bin"
        number = lambda flag: subprocess.check_output(["id", flag, "postgres"], text=True).strip()
        user = ([f"--map-user={number('-u')}", f"--map-group={number('-g')}"]
                if os.geteuid() == 0 else ["--map-current-user"])
        os.mkdir("pg")
        as_user = ["--user", *user, "--pid", "--fork", "--kill-child"]
        data = ["-D", os.path.abspath("pg/data")]
        subprocess.run(["unshare", *as_user, f"{self.programs}/initdb", "-A", "trust", "-U",
                        "postgres", "-E", "UTF8", "--locale=C", *data], check=True,
                       capture_output=True)
        words = [*as_user, f"{self.programs}/postgres", *data, "-k", os.path.abspath("pg"), "-c",
                 "listen_addresses=", "-c", "fsync=on"]
        super().__init__("postgres", words, "unshare")

    def kill(self):
        """The first of the namespace, and with it all; unshare ends when they have."""
        of = self.process.pid
        for _ in range(60):
            with contextlib.suppress(OSError):
                with open(f"/proc/{of}/task/{of}/children", encoding="ascii") as children:
                    for child in children.read().split():
                        os.kill(int(child), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)
                return
        super().kill()

    def sql(self, sql, database="mesh"):
        words = ["-h", os.path.abspath("pg"), "-U", "postgres", "-X", "-A", "-t", "-q", "-v",
                 "ON_ERROR_STOP=1", "-d", database, "-c", sql]
        done = subprocess.run([f"{self.programs}/psql", *words], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None


class Database:
    """The hub's store is PostgreSQL, and nats-server where it meets agents."""

    agent = ["--join", f"tls://agent:{AGENT_PASSWORD}@localhost:{BROKER_PORT}",
             "--ca", f"{TLS}/ca.pem"]

    def __init__(self):
        self.store = f"postgresql://postgres@{os.path.abspath('pg').replace('/', '%2F')}/mesh"
        self.hub = ["--mesh-store", self.store, "--mesh-ca", f"{TLS}/ca.pem",
                    "--mesh-bus", f"tls://hub:{HUB_PASSWORD}@localhost:{BROKER_PORT}"]
        self.postgres = None

    def begin(self):
        self.postgres = Postgres()
        waits_for("PostgreSQL", lambda: self.postgres.sql("SELECT 1", "postgres"), 60)
        self.postgres.sql("CREATE DATABASE mesh", "postgres")
        os.environ.update(STREAM_DIRECTORY=os.path.abspath("stream"), HUB_PASSWORD=HUB_PASSWORD,
                          AGENT_PASSWORD=AGENT_PASSWORD)
        words = ["-c", f"{ROOT}/docs/nats/nats-server.conf", "-a", "127.0.0.1",
                 "-p", str(BROKER_PORT), "--tls", "--tlscert", f"{TLS}/one.pem",
                 "--tlskey", f"{TLS}/one.key"]
        nats = Program("nats-server", words, "nats-server")
        waits_for("nats-server",
                  lambda: socket.socket().connect_ex(("127.0.0.1", BROKER_PORT)) == 0, 60)
        return {"nats-server": nats, "postgres": self.postgres}

    def rows(self, agent):
        """As of an agent; in the end how often the record is there."""
        found = self.ask(f"""SELECT task, start_s, state, reason, record,
                                    (record IS NOT DISTINCT FROM doc::json ->> 'id')::int
                             FROM mesh_result JOIN mesh_path USING (path)
                             WHERE agent = '{agent}' AND mesh = 'm'""")
        return {(task, start_s): rest for task, start_s, *rest in found}

    def wrong(self, agent):
        """What is there twice, or was counted twice, in words."""
        found = self.ask(f"""
            WITH mine AS (SELECT * FROM mesh_result JOIN mesh_path USING (path)
                          WHERE agent = '{agent}' AND mesh = 'm')
            SELECT 'rows of one run' AS what, count(*) AS one,
                   count(DISTINCT (task, start_s)) AS other FROM mine
            UNION ALL
            SELECT 'records of one run', count(doc),
                   count(DISTINCT (doc::json -> 'tags' ->> 'slot') || task) FROM mine
            UNION ALL
            SELECT 'runs as counted', sum(runs), (SELECT count(*) FROM mine) FROM mesh_outcome
            WHERE agent = '{agent}' AND mesh = 'm'
            UNION ALL
            SELECT 'newest runs', max(last_s), max(start_s)
            FROM mine JOIN mesh_latest USING (path) GROUP BY path""")
        return [(what, one, other) for what, one, other in found if one != other]

    def bookings(self):
        return self.ask("SELECT count(*) FROM mesh_booking")[0][0]

    def bookings_without_row(self):
        return self.ask(f"""
            SELECT agent, task, start_s FROM mesh_booking AS it
            WHERE start_s < {int(time.time()) - 60} AND NOT EXISTS
                (SELECT 1 FROM mesh_result AS run JOIN mesh_path USING (path)
                 WHERE agent = it.agent AND task = it.task AND run.start_s = it.start_s)""")

    def ask(self, sql):
        # Reasons may have any letters: as JSON they are not taken for others.
        found = self.postgres.sql(f"SELECT coalesce(json_agg(it), '[]') FROM ({sql}) AS it")
        if found is None:
            sys.exit(f"PostgreSQL did not answer: {sql}")
        return [tuple(row.values()) for row in json.loads(found)]

    def copies(self, _):
        self.postgres.kill()
        shutil.copytree("pg/data", "copy")
        self.postgres.begin()

    def puts_back(self, _):
        self.postgres.kill()
        shutil.rmtree("pg/data")
        shutil.copytree("copy", "pg/data")
        self.postgres.begin()
