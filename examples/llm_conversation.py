"""llm: the same conversation in its own log, and in a session of thinkback with the reasoning that goes back."""

import llm


def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


model = llm.get_model("thinkback/deepseek/deepseek-v4-pro")
conversation = model.conversation(tools=[weather])
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    print(conversation.chain(question, options={"effort": "high", "session": "weather-llm"}).text())
print(f"recorded in session weather-llm; `llm thinkback why weather-llm` explains the last request of {model.model_id}")
