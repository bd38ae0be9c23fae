// Holds the conversations that come in as lines of JSON, one after another; each answer is a line of JSON:
// {"said": [...]} or {"failed": "..."}.
import { createInterface } from "node:readline";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

// Warnings are not for the output.
globalThis.AI_SDK_LOG_WARNINGS = false;

const city = z.object({ city: z.string() });
const tools = Object.fromEntries(
  Object.entries({ weather: "The weather of a city", clock: "The time in a city" }).map(([name, description]) => [
    name,
    tool({ description, inputSchema: city, execute: async (given) => `result of ${name} in ${given.city}` }),
  ]),
);
const weather = z.object({ city: z.string(), degrees: z.number().int() });

const MODELS = {
  "ai @ai-sdk/openai, chat": (place, model) => createOpenAI(place).chat(model),
  "ai @ai-sdk/openai, Responses": (place, model) => createOpenAI(place).responses(model),
  "ai @ai-sdk/openai-compatible": (place, model) =>
    createOpenAICompatible({ ...place, name: "compatible", supportsStructuredOutputs: true })(model),
  "ai @ai-sdk/anthropic": (place, model) =>
    createAnthropic({ ...place, baseURL: `${place.baseURL}/v1`, headers: { "anthropic-version": "2023-06-01" } })(model),
  "ai @ai-sdk/google": (place, model) => createGoogleGenerativeAI({ ...place, baseURL: `${place.baseURL}/v1beta` })(model),
};

function asks(job) {
  const stateless = job.mode === "store: false" ? { store: false } : {};
  if (!job.effort) return { openai: stateless };
  return {
    openai: { reasoningEffort: job.effort, ...stateless },
    compatible: { reasoningEffort: job.effort },
    anthropic: { thinking: { type: "enabled", budgetTokens: 10000 } },
  };
}

async function hold(job) {
  const model = MODELS[job.client]({ baseURL: job.base_url, apiKey: job.key }, job.model);
  const messages = [];
  const said = [];
  for (const prompt of job.prompts) {
    messages.push({ role: "user", content: prompt });
    const request = { model, messages, tools, stopWhen: stepCountIs(8), maxRetries: 0, providerOptions: asks(job) };
    if (job.mode === "structured") {
      const result = await generateText({ ...request, output: Output.object({ schema: weather }) });
      messages.push(...result.response.messages);
      said.push(JSON.stringify(result.output));
    } else if (job.mode === "streamed") {
      let failed;
      const result = streamText({ ...request, onError: ({ error }) => (failed = error) });
      await result.consumeStream();
      if (failed) throw failed;
      messages.push(...(await result.response).messages);
      said.push(await result.text);
    } else {
      const result = await generateText(request);
      messages.push(...result.response.messages);
      said.push(result.text);
    }
  }
  return said;
}

for await (const line of createInterface({ input: process.stdin })) {
  let found;
  try {
    found = { said: await hold(JSON.parse(line)) };
  } catch (error) {
    found = { failed: `${error?.name ?? "Error"}: ${error?.message ?? error}` };
  }
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
