"""The ``openai-chat`` dialect: chat completions with any of the reasoning fields that hosts add to it."""
