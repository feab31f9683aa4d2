// Agents on the OpenAI SDK for Node: its runner calls the tools and asks again until there is an answer. Prints what the
// runner has at the end, for each model, with and without streams:
//
//     node agents.mjs '{"base_url": …, "models": […]}'

import OpenAI from 'openai';

const target = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL: target.base_url, apiKey: 'unused', maxRetries: 0, timeout: 30_000 });

const weather = {
  name: 'get_weather',
  description: 'Get the current weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  parse: JSON.parse,
  function: ({ city }) => `21 degrees in ${city}`,
};
const time = {
  name: 'get_time',
  description: 'Get the current time.',
  parameters: { type: 'object', properties: {} },
  function: (text) => `noon, asked with ${text}`,
};

async function agent(model, streamed) {
  const runner = client.chat.completions.runTools({
    model,
    messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
    tools: [
      { type: 'function', function: weather },
      { type: 'function', function: time },
    ],
    ...(streamed ? { stream: true } : {}),
  });
  const { choices } = await runner.finalChatCompletion();
  return { messages: runner.messages, finish: choices[0].finish_reason };
}

const report = {};
for (const model of target.models) {
  for (const mode of ['whole', 'streamed']) {
    report[`${model} ${mode}`] = await agent(model, mode === 'streamed').catch((error) => ({ raised: String(error.stack) }));
  }
}
console.log(JSON.stringify(report));
