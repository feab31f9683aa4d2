// The AI SDK with its provider for OpenAI-compatible servers.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

import { DESCRIPTION, TEXTS, call, main, numbers, said, target, weather } from './report.mjs';

const provider = createOpenAICompatible({ name: 'turnout', baseURL: target.base_url, includeUsage: true });
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

async function embeddings(model) {
  const { embeddings: vectors } = await embedMany({ model: provider.embeddingModel(model), values: TEXTS });
  return numbers(vectors);
}

await main(ask, agent, { embeddings });
