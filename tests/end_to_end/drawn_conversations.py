"""Generates random conversations of every kind that chat templates accept or refuse. Used by chat_template_test.py."""

import random

PIECES = ["hello", "naïve", "日本語", "🙂 ok", "<|im_end|>", "x = {'a': 1}", "{{ not jinja }}", "line one\nline two", "  indented", "tab\there",
          '"quoted" & <b>', "é́", "\u2028sep", "\u00a0hard", "12.50", "ÀÉ", "ßΣ", "/think", "</think>", "<think>", "\\n literal", "it's",
          "```py\nprint('hi')\n```", "<s>", "[INST]"]
NUMBERS = [1, -2, 0.5, 10**12, 1e-7, 3.0, 1e22]


class Drawn:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, share):
        return self.random.random() < share

    def text(self):
        if self.chance(0.07):
            return ""
        text = " ".join(self.random.choice(PIECES) for _ in range(self.random.randint(1, 5)))
        if self.chance(0.2):
            text += self.random.choice([" ", "\n", "  \n\n", "\t", "\u3000"])
        return self.random.choice([" ", "\n"]) + text if self.chance(0.15) else text

    def tool(self, number):
        properties = {"city": {"type": "string", "description": self.text()}, "n": {"type": "integer", "enum": [1, 2], "default": 3}}
        if self.chance(0.5):
            properties["u"] = {"type": ["string", "null"]}
        return {"type": "function", "function": {"name": f"get_{number}", "description": self.text(),
                                                 "parameters": {"type": "object", "properties": properties, "required": ["city"]}}}

    def call(self, number):
        arguments = {"city": self.text(), "n": self.random.choice(NUMBERS), "flag": self.chance(0.5), "none": None,
                     "list": [1, "a", {"b": 2.5}]}
        return {"id": f"call{number:05d}", "type": "function", "function": {"name": "get_0", "arguments": arguments}}

    def tool_turn(self):
        calls = [self.call(number) for number in range(self.random.randint(1, 2))]
        message = {"role": "assistant", "tool_calls": calls}
        if self.chance(0.8):
            message["content"] = self.random.choice([self.text(), self.text(), None, ""])
        answers = [{"role": "tool", "name": "get_0", "tool_call_id": call["id"],
                    "content": self.random.choice([self.text(), '{"temp": 21.5}'])} for call in calls]
        return [message, *answers]

    def answer(self):
        message = {"role": "assistant", "content": self.text()}
        if self.chance(0.15):
            message[self.random.choice(["reasoning_content", "thinking", "reasoning"])] = self.text()
        return message

    def conversation(self):
        """Arguments of apply_chat_template: messages, tools, documents, and a variable that some templates use."""
        messages = [{"role": "system", "content": self.text()}] if self.chance(0.5) else []
        tools = [self.tool(number) for number in range(self.random.randint(1, 3))] if self.chance(0.35) else None
        for _ in range(self.random.randint(1, 4)):
            messages.append({"role": "user", "content": self.text()})
            if tools and self.chance(0.6):
                messages += self.tool_turn()
            if self.chance(0.85):
                messages.append(self.answer())
        what = self.random.random()
        if what < 0.05:
            messages.append({"role": "strange", "content": "x"})
        elif what < 0.1:
            messages.insert(0, {"role": "assistant", "content": "first"})
        elif what < 0.15:
            messages.append({"role": "user", "content": [{"type": "text", "text": self.text()}]})
        drawn = {"messages": messages}
        if tools:
            drawn["tools"] = tools
        if self.chance(0.1):
            drawn["documents"] = [{"title": self.text(), "text": self.text()}]
        if self.chance(0.1):
            drawn["enable_thinking"] = self.chance(0.5)
        return drawn
