"""The openai package with asyncio and streams, at a provider that speaks chat completions."""

import asyncio
import os

import openai

import thinkback


async def main() -> None:
    client = openai.AsyncOpenAI(
        base_url=os.environ.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=os.environ["DEEPSEEK_API_KEY"],
        http_client=thinkback.async_http_client("chats.db"),
    )
    messages = []
    async with client:
        for question in ("Why is the sky blue?", "And why is it red in the evening?"):
            messages.append({"role": "user", "content": question})
            text = ""
            stream = await client.chat.completions.create(model="deepseek-v4-pro", messages=messages, stream=True)
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    text += chunk.choices[0].delta.content
            messages.append({"role": "assistant", "content": text})
            print(text)
    print(thinkback.why())


asyncio.run(main())
