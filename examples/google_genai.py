"""The google-genai package: contents that a program rebuilds from text and calls, without their thought signatures."""

from google import genai
from google.genai import types

import thinkback


def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


client = genai.Client(http_options={"httpx_client": thinkback.http_client("chats.db")})
manual = types.AutomaticFunctionCallingConfig(disable=True)
config = types.GenerateContentConfig(tools=[weather], automatic_function_calling=manual)
contents = []
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    contents.append(types.UserContent(question))
    while True:
        said = client.models.generate_content(model="gemini-3-pro-preview", contents=contents, config=config)
        parts = [part for part in said.candidates[0].content.parts if not part.thought]
        kept = [types.Part(text=part.text, function_call=part.function_call) for part in parts]
        contents.append(types.Content(role="model", parts=kept))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            break
        answers = [
            types.FunctionResponse(id=call.id, name=call.name, response={"result": weather(**call.args)})
            for call in calls
        ]
        contents.append(types.UserContent([types.Part(function_response=answer) for answer in answers]))
    print("".join(part.text or "" for part in parts))
print(thinkback.why())
