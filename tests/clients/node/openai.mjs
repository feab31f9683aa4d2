// The OpenAI SDK for Node.

import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { DESCRIPTION, PERSON, TEXTS, call, main, numbers, said, target, weather } from './report.mjs';

const client = new OpenAI({ baseURL: target.base_url, apiKey: 'unused', maxRetries: 0, timeout: 30_000 });
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const tool = {
  type: 'function',
  function: { name: 'get_weather', description: DESCRIPTION, parameters, strict: true },
};

// The whole answer; a stream goes through the SDK's own accumulator.
async function complete(body, { streamed, tools }) {
  const request = tools ? { ...body, tools: [tool] } : body;
  if (!streamed) return client.chat.completions.create(request);
  const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  return stream.finalChatCompletion();
}

function read({ choices: [choice], usage }) {
  return said(
    choice.message.content,
    (choice.message.tool_calls ?? []).map((one) => call(one.id, one.function.name, one.function.arguments)),
    choice.finish_reason,
    usage && [usage.prompt_tokens, usage.completion_tokens],
  );
}

async function ask(model, text, how) {
  return read(await complete({ model, messages: [{ role: 'user', content: text }] }, how));
}

// The SDK's runner calls the tool and asks again by itself.
async function agent(model, text, { streamed }) {
  const runner = client.chat.completions.runTools({
    model,
    messages: [{ role: 'user', content: text }],
    tools: [{ ...tool, function: { ...tool.function, function: weather, parse: JSON.parse } }],
    ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
  return read(await runner.finalChatCompletion());
}

const person = z.object({ name: z.string(), age: z.int() });
const wanted = { messages: [{ role: 'user', content: PERSON }], response_format: zodResponseFormat(person, 'person') };

async function personBySchema(model) {
  const { choices } = await client.chat.completions.parse({ model, ...wanted });
  return choices[0].message.parsed;
}

async function personBySchemaStreamed(model) {
  const { choices } = await client.chat.completions.stream({ model, ...wanted }).finalChatCompletion();
  return choices[0].message.parsed;
}

// The tool is required, and its schema is strict.
async function personByTool(model) {
  const { choices } = await client.chat.completions.parse({
    model,
    messages: wanted.messages,
    tools: [zodFunction({ name: 'person', parameters: person })],
    tool_choice: 'required',
  });
  return choices[0].message.tool_calls[0].function.parsed_arguments;
}

async function embeddings(model, more = {}) {
  const { data } = await client.embeddings.create({ model, input: TEXTS, ...more });
  return numbers(data.map((one) => one.embedding));
}

const objects = {
  person_by_schema: personBySchema,
  person_by_schema_streamed: personBySchemaStreamed,
  person_by_tool: personByTool,
};
await main(ask, agent, objects, {
  embeddings,
  embeddings_as_floats: (model) => embeddings(model, { encoding_format: 'float' }),
});
