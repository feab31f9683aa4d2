// The AI SDK with its provider for OpenAI-compatible servers.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, embedMany, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

import { DESCRIPTION, PERSON, TEXTS, call, main, numbers, said, target, weather } from './report.mjs';

const provider = createOpenAICompatible({
  name: 'turnout',
  baseURL: target.base_url,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const person = z.object({ name: z.string(), age: z.int() });
const inputSchema = z.object({ city: z.string() });

// The last step: what was generated after the results of tools, if any were called.
async function generate(options, streamed) {
  if (!streamed) return (await generateText({ ...options, maxRetries: 0 })).finalStep;
  let failure;
  const result = streamText({ ...options, maxRetries: 0, onError: ({ error }) => (failure = error) });
  await result.consumeStream();
  if (failure) throw failure;
  return result.finalStep;
}

function read({ text, toolCalls, finishReason, usage }) {
  const calls = toolCalls.map((one) => call(one.toolCallId, one.toolName, one.invalid ? { invalid: one.input } : one.input));
  return said(text, calls, finishReason.replace('-', '_'), [usage.inputTokens, usage.outputTokens]);
}

async function ask(model, prompt, { streamed, tools }) {
  const offered = tools ? { tools: { get_weather: tool({ description: DESCRIPTION, inputSchema }) } } : {};
  return read(await generate({ model: provider(model), prompt, ...offered }, streamed));
}

async function agent(model, prompt, { streamed }) {
  const tools = { get_weather: tool({ description: DESCRIPTION, inputSchema, execute: async (input) => weather(input) }) };
  return read(await generate({ model: provider(model), prompt, tools, stopWhen: isStepCount(3) }, streamed));
}

async function personBySchema(model) {
  const output = Output.object({ schema: person });
  return (await generateText({ model: provider(model), prompt: PERSON, output, maxRetries: 0 })).output;
}

// The tool is required.
async function personByTool(model) {
  const tools = { person: tool({ inputSchema: person }) };
  const how = { model: provider(model), prompt: PERSON, tools, toolChoice: 'required', maxRetries: 0 };
  return (await generateText(how)).toolCalls[0].input;
}

async function embeddings(model) {
  const { embeddings: vectors } = await embedMany({ model: provider.embeddingModel(model), values: TEXTS });
  return numbers(vectors);
}

await main(ask, agent, { person_by_schema: personBySchema, person_by_tool: personByTool }, { embeddings });
