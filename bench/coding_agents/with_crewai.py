"""A crew of one agent with a shell: ``python with_crewai.py LINE PROMPT``, with the line of ``thinkback connect``.

Nothing here imports thinkback: it runs where that is not installed.
"""

from __future__ import annotations

import os
import subprocess
import sys

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


@tool("run_shell_command")  # type: ignore[untyped-decorator,unused-ignore]
def shell(command: str) -> str:
    """Run a command in a shell."""
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=20).stdout


def main(line: str, prompt: str) -> None:
    """Have the task done and print what came of it."""
    llm = eval(line, {"LLM": LLM, "os": os})  # the line for a person's code, as it is printed
    agent = Agent(role="looker", goal="Look into boxes", backstory="Careful.", tools=[shell], llm=llm, verbose=False)
    task = Task(description=prompt, expected_output="What is in the boxes", agent=agent)
    print(Crew(agents=[agent], tasks=[task], verbose=False).kickoff().raw)


if __name__ == "__main__":
    main(*sys.argv[1:])
