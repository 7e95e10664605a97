"""Frameworks on top of OpenAI's SDK, each with tools and a format in one request, which is where servers differ.

`scripts/sdk_test.py` runs these if the packages are there; `make test-sdk` installs them. A small model is no good at deciding whether to call a tool,
so what is checked is what the server owes: every answer is a call with valid arguments, or of the type that was asked for. An agent whose model calls a tool again
and again meets its own limit of turns; that is no fault of the server, and said.
"""

import asyncio
import os
from typing import Literal

from pydantic import BaseModel, Field

# Traces would go to another server.
os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")


class Weather(BaseModel):
    """What the weather is like."""

    city: Literal["Oslo", "Rome"]
    degrees: int = Field(ge=-50, le=60)


def goes_on(name):
    print(f"    {name}: the model called its tool until the limit of turns", flush=True)


QUESTION = "What is the weather in Oslo?"


def instructor(url, model):
    import instructor as package
    from openai import OpenAI

    plain = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    # Mode.JSON asks for an object of any kind, which says nothing about its keys.
    for mode in (package.Mode.TOOLS, package.Mode.JSON_SCHEMA, package.Mode.TOOLS_STRICT):
        client = package.from_openai(plain, mode=mode)
        found = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": QUESTION}], response_model=Weather, max_retries=0, max_tokens=200
        )
        assert isinstance(found, Weather), (mode, found)
    client = package.from_openai(plain, mode=package.Mode.RESPONSES_TOOLS)
    found = client.responses.create(model=model, input=QUESTION, response_model=Weather, max_retries=0, max_output_tokens=200)
    assert isinstance(found, Weather), found


def langchain(url, model):
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.errors import GraphRecursionError

    @tool
    def clock(zone: Literal["UTC", "CET"]) -> str:
        """The time in a zone."""
        return "noon"

    chat = ChatOpenAI(base_url=f"{url}/v1", api_key="none", model=model, max_retries=0, max_tokens=80)
    assert isinstance(chat.with_structured_output(Weather).invoke(QUESTION), Weather)
    assert isinstance(chat.with_structured_output(Weather, method="function_calling").invoke(QUESTION), Weather)
    answer = chat.bind_tools([clock], response_format=Weather, strict=True).invoke(QUESTION)
    if answer.tool_calls:
        assert all(call["name"] == "clock" and call["args"]["zone"] in ("UTC", "CET") for call in answer.tool_calls), answer
    else:
        Weather.model_validate_json(answer.content)
    agent = create_agent(chat, tools=[clock], response_format=ProviderStrategy(Weather))
    try:
        state = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]}, {"recursion_limit": 8})
    except GraphRecursionError:
        goes_on("langchain")
    else:
        assert isinstance(state["structured_response"], Weather), state


def pydantic_ai(url, model):
    from pydantic_ai import Agent, NativeOutput, ToolOutput, UsageLimits
    from pydantic_ai.exceptions import UsageLimitExceeded
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="none")
    calls = []

    def clock(zone: Literal["UTC", "CET"]) -> str:
        """The time in a zone."""
        calls.append(zone)
        return "noon"

    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        for output in (NativeOutput(Weather), ToolOutput(Weather)):
            tools = [clock] if isinstance(output, NativeOutput) else []
            agent = Agent(kind(model, provider=provider), output_type=output, tools=tools, retries=0)
            try:
                found = agent.run_sync(QUESTION, model_settings={"max_tokens": 80}, usage_limits=UsageLimits(request_limit=4))
            except UsageLimitExceeded:
                goes_on("pydantic_ai")
            else:
                assert isinstance(found.output, Weather), found
    assert all(zone in ("UTC", "CET") for zone in calls)


def agents(url, model):
    from agents import Agent, AsyncOpenAI, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from agents import MaxTurnsExceeded, ModelSettings

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    @function_tool
    def clock(zone: Literal["UTC", "CET"]) -> str:
        """The time in a zone."""
        assert zone in ("UTC", "CET")
        return "noon"

    async def both():
        for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
            agent = Agent(
                name="weather",
                instructions="Tell the weather.",
                model=kind(model=model, openai_client=client),
                output_type=Weather,
                tools=[clock],
                model_settings=ModelSettings(max_tokens=80),
            )
            try:
                found = await Runner.run(agent, QUESTION, max_turns=4)
            except MaxTurnsExceeded:
                goes_on("agents")
            else:
                assert isinstance(found.final_output, Weather), found

    asyncio.run(both())


FRAMEWORKS = {"instructor": instructor, "langchain": langchain, "pydantic_ai": pydantic_ai, "agents": agents}
