// What one client library makes of the gateway's answers, as JSON on standard output: the same cases and the same form
// as those of ../libraries/report.py.
//
//     node NAME.mjs '{"base_url": …, "models": […], "embedding": …}'

const HELLO = 'Hello!';
const STORY = 'Tell me a story.';
const WEATHER = 'What is the weather in Paris?';
const TWO_CITIES = 'What is the weather in Paris and Oslo?';
const TOO_LONG = 'word '.repeat(5_000);

export const PERSON = 'Give me JSON.';
export const TEXTS = ['a robot', 'the sea'];
export const DESCRIPTION = 'Get the current weather of a city.';
export const target = JSON.parse(process.argv[2]);
export const weather = ({ city }) => `21 degrees in ${city}`;

export function said(text, calls, finish, usage) {
  return { text: text || null, calls, finish: finish ?? null, usage: usage ?? null };
}

export function call(id, name, args) {
  return { id, name, arguments: typeof args === 'string' ? JSON.parse(args) : args };
}

export function numbers(vectors) {
  return vectors.map((vector) => ({
    dimensions: vector.length,
    first: Array.from(vector.slice(0, 4), (one) => Math.round(one * 1e5) / 1e5),
  }));
}

function cases(ask, agent) {
  const found = {};
  for (const [name, streamed] of [['', false], ['_streamed', true]]) {
    found[`chat${name}`] = (model) => ask(model, HELLO, { streamed, tools: false });
    found[`story${name}`] = (model) => ask(model, STORY, { streamed, tools: false });
    found[`call${name}`] = (model) => ask(model, WEATHER, { streamed, tools: true });
    found[`two_calls${name}`] = (model) => ask(model, TWO_CITIES, { streamed, tools: true });
    found[`unused_tool${name}`] = (model) => ask(model, HELLO, { streamed, tools: true });
    found[`agent${name}`] = (model) => agent(model, WEATHER, { streamed });
    found[`too_long${name}`] = (model) => ask(model, TOO_LONG, { streamed, tools: false });
    found[`unknown_model${name}`] = (model) => ask(`no-${model}`, HELLO, { streamed, tools: false });
  }
  return found;
}

function raised(error) {
  const kinds = [];
  for (let kind = error.constructor; kind?.name; kind = Object.getPrototypeOf(kind)) kinds.push(kind.name);
  return {
    raised: [error.name, ...kinds],
    status: error.status ?? error.statusCode ?? null,
    code: error.code ?? error.data?.error?.code ?? null,
    text: error.message,
    trace: String(error.stack),
  };
}

export async function main(ask, agent, objects, embeddings) {
  const report = {};
  const run = async (name, model, action) => {
    report[name] ??= {};
    report[name][model] = await action(model).then((gave) => ({ gave }), raised);
  };
  for (const [name, action] of Object.entries({ ...cases(ask, agent), ...objects })) {
    for (const model of target.models) await run(name, model, action);
  }
  for (const [name, action] of Object.entries(embeddings)) await run(name, target.embedding, action);
  console.log(JSON.stringify(report));
}
