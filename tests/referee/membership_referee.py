"""The bytes of torchft's messages: ours and those of Google's protobuf, in both directions. The descriptors are written here from the
table of torchft's fields."""

import argparse
import json
import random
import subprocess
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT64, STRING, BOOL, UINT64, INT32, MESSAGE = 3, 9, 8, 4, 5, 11
FIELDS = {
    "QuorumMember": [("replica_id", 1, STRING), ("address", 2, STRING), ("store_address", 3, STRING), ("step", 4, INT64),
                     ("world_size", 5, UINT64), ("shrink_only", 6, BOOL), ("data", 7, STRING), ("commit_failures", 8, INT64),
                     ("reconfigure_handles", 9, STRING, "repeated")],
    "Timestamp": [("seconds", 1, INT64), ("nanos", 2, INT32)],
    "Quorum": [("quorum_id", 1, INT64), ("participants", 2, "QuorumMember", "repeated"), ("created", 3, "Timestamp")],
    "LighthouseQuorumRequest": [("requester", 1, "QuorumMember")],
    "LighthouseQuorumResponse": [("quorum", 1, "Quorum")],
    "LighthouseHeartbeatRequest": [("replica_id", 1, STRING)],
}


def classes():
    file = descriptor_pb2.FileDescriptorProto(name="torchft.proto", package="torchft", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, *repeated in fields:
            entry = message.field.add(name=field, number=number, label=3 if repeated else 1,
                                      type=MESSAGE if isinstance(kind, str) else kind)
            if isinstance(kind, str):
                entry.type_name = ".torchft." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName("torchft." + name)) for name in FIELDS}


TYPES = classes()
TEXTS = ["", "a", "replica_0:4b0e", "http://[::1]:29510", "Größe \U0001f600", "x" * 127, "y" * 128, "z" * 20000, 'quote " \\ \n']
NUMBERS = [0, 1, 127, 128, 300, 2**31, 2**62, 2**63 - 1]
DATA = [None, {}, [], True, 0, -1.5, "text", {"hash": "00ff", "list": [1, 2.5, None, "ä"], "map": {"x": {}}}]


def drawn_member(chance):
    return {"id": chance.choice(TEXTS), "address": chance.choice(TEXTS), "store": chance.choice(TEXTS),
            "step": chance.choice(NUMBERS + [-1, -2**63]), "world_size": chance.choice(NUMBERS), "data": chance.choice(DATA),
            "commit_failures": chance.choice(NUMBERS + [-1])}


def message_of(member, **more):
    data = "" if member["data"] is None else json.dumps(member["data"], separators=(",", ":"), ensure_ascii=False)
    return TYPES["QuorumMember"](replica_id=member["id"], address=member["address"], store_address=member["store"], step=member["step"],
                                 world_size=member["world_size"], data=data, commit_failures=member["commit_failures"], **more)


def ask(probe, mode, lines):
    done = subprocess.run([probe, mode], input="".join(line + "\n" for line in lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", required=True)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--show", action="store_true", help="print the bytes that the unit tests hold")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6)
    chance = random.Random(seed)
    print("seed", seed)

    members = [drawn_member(chance) for _ in range(options.draws)]
    for member, ours in zip(members, ask(options.probe, "write", map(json.dumps, members)), strict=True):
        request = TYPES["LighthouseQuorumRequest"](requester=message_of(member))
        assert ours["quorum"] == request.SerializeToString(deterministic=True).hex(), member
        assert ours["heartbeat"] == TYPES["LighthouseHeartbeatRequest"](replica_id=member["id"]).SerializeToString().hex(), member

    answers = []
    for _ in range(options.draws):
        # of each id one, because the order of equal ones is not defined
        drawn = {member["id"]: member for member in (drawn_member(chance) for _ in range(chance.randrange(6)))}
        answers.append((chance.choice(NUMBERS), chance.choice(NUMBERS), chance.randrange(10**9), list(drawn.values())))
    lines = []
    for number, seconds, nanos, drawn in answers:
        # fields that only newer servers send, which ours skips
        participants = [message_of(member, shrink_only=chance.random() < 0.3, reconfigure_handles=["h"] * chance.randrange(3))
                        for member in drawn]
        lines.append(TYPES["LighthouseQuorumResponse"](quorum=TYPES["Quorum"](
            quorum_id=number, participants=participants, created=TYPES["Timestamp"](seconds=seconds, nanos=nanos))).SerializeToString().hex())
    for (number, seconds, nanos, drawn), ours in zip(answers, ask(options.probe, "read", lines), strict=True):
        assert ours["id"] == number
        assert ours["epoch"].startswith(f"{number}-{seconds}-{nanos}-"), ours["epoch"]
        assert ours["members"] == sorted(drawn, key=lambda member: member["id"].encode()), (ours["members"], drawn)

    if options.show:
        example = {"id": "replica_1:u", "address": "http://b:1", "store": "b:2", "step": 300, "world_size": 2, "data": {"lineage": "ff"},
                   "commit_failures": -1}
        print("request", TYPES["LighthouseQuorumRequest"](requester=message_of(example)).SerializeToString().hex())
        other = {**example, "id": "replica_0:u", "step": 0, "data": None, "commit_failures": 0}
        print("answer", TYPES["LighthouseQuorumResponse"](quorum=TYPES["Quorum"](
            quorum_id=7, participants=[message_of(example, reconfigure_handles=["h"]), message_of(other)],
            created=TYPES["Timestamp"](seconds=5, nanos=9))).SerializeToString().hex())
    print(f"{2 * options.draws} messages are equal to protobuf's")


if __name__ == "__main__":
    sys.exit(main())
