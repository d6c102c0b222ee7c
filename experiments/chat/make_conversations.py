"""Turns dictionary entries (JSON lines with `text`) into conversations: the user asks for a word, the entry is the answer.

    make_conversations.py <entries.jsonl> <conversations.jsonl>
"""

import json
import pathlib
import re
import sys

source, target = map(pathlib.Path, sys.argv[1:])
target.parent.mkdir(parents=True, exist_ok=True)
with source.open(encoding="utf-8") as entries, target.open("w", encoding="utf-8") as conversations:
    for line in entries:
        entry = json.loads(line)["text"]
        word = re.match(r"[^\s,:.;]+", entry)
        question = f"What does {word.group(0)} mean?" if word else "Tell me a word."
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": entry}]
        conversations.write(json.dumps({"messages": messages}) + "\n")
