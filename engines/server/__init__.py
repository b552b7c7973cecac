"""The built-in engine as an OpenAI-compatible HTTP server, in two processes as vLLM's V1.

The front end speaks HTTP, makes tokens of text and text of tokens. The engine core schedules and
steps, and sends each step's tokens to the front end in one message.
"""
