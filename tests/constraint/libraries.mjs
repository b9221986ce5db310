// Prints schemas as libraries make them, a line {"name": ..., "schema": ...} each: zod's own toJSONSchema,
// zod-to-json-schema for zod 3, and the helpers of OpenAI's and Anthropic's SDKs.
//
// usage: node libraries.mjs FOLDER
// npm has installed there: zod, zod3@npm:zod@3, zod-to-json-schema, openai, @anthropic-ai/sdk
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const { z: four } = require("zod");
const { z: three } = require("zod3");
const { zodToJsonSchema } = require("zod-to-json-schema");

const print = (name, make) => {
  try {
    console.log(JSON.stringify({ name, schema: make() }));
  } catch (error) {
    console.error(name + ": " + String(error).split("\n")[0]);
  }
};

// What both versions of zod can say.
const common = (z) => ({
  string: z.string(),
  lengths: z.string().min(2).max(5),
  length: z.string().length(4),
  regex: z.string().regex(/^[a-z]+-\d{2,4}$/),
  regexAhead: z.string().regex(/^(?!admin)(?=.*\d)[a-z\d]{3,20}$/),
  regexWord: z.string().regex(/\bcat\b/),
  startsWith: z.string().startsWith("abc").endsWith("z"),
  includes: z.string().includes("mid"),
  email: z.string().email(),
  emailShort: z.string().email().max(60),
  url: z.string().url(),
  urlShort: z.string().url().max(200),
  uuid: z.string().uuid(),
  datetime: z.string().datetime(),
  datetimeOffset: z.string().datetime({ offset: true }),
  date: z.string().date(),
  time: z.string().time(),
  duration: z.string().duration(),
  base64: z.string().base64(),
  cuid: z.string().cuid(),
  cuid2: z.string().cuid2(),
  ulid: z.string().ulid(),
  nanoid: z.string().nanoid(),
  emoji: z.string().emoji(),
  jwt: z.string().jwt(),
  trimmed: z.string().trim().toLowerCase().min(1),
  number: z.number(),
  numberBounds: z.number().min(0.5).max(99.5),
  numberOpen: z.number().gt(0).lt(1),
  int: z.number().int(),
  intBounds: z.number().int().min(1).max(10),
  positive: z.number().positive(),
  nonnegative: z.number().int().nonnegative(),
  multiple: z.number().multipleOf(5),
  multipleFraction: z.number().multipleOf(0.01),
  finite: z.number().finite().safe(),
  boolean: z.boolean(),
  null: z.null(),
  any: z.any(),
  unknown: z.unknown(),
  literal: z.literal("x"),
  literalNumber: z.literal(7),
  enum: z.enum(["a", "b", "c"]),
  nullable: z.string().nullable(),
  optional: z.object({ a: z.string().optional(), b: z.number() }),
  defaulted: z.object({ a: z.string().default("x"), b: z.array(z.number()).default([]) }),
  described: z.object({ a: z.string().describe("what it is") }).describe("all"),
  object: z.object({ a: z.string(), b: z.number().int() }),
  strict: z.object({ a: z.string() }).strict(),
  passthrough: z.object({ a: z.string() }).passthrough(),
  catchall: z.object({ a: z.string() }).catchall(z.number()),
  partial: z.object({ a: z.string(), b: z.number() }).partial(),
  extended: z.object({ a: z.string() }).extend({ b: z.number() }),
  array: z.array(z.string()),
  arrayBounds: z.array(z.number()).min(1).max(3),
  nonempty: z.array(z.string()).nonempty(),
  tuple: z.tuple([z.string(), z.number()]),
  tupleRest: z.tuple([z.string()]).rest(z.number()),
  union: z.union([z.string(), z.number(), z.object({ a: z.null() })]),
  discriminated: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("a"), v: z.string() }),
    z.object({ kind: z.literal("b"), v: z.number() }),
  ]),
  intersection: z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })),
  readonly: z.object({ a: z.string() }).readonly(),
  branded: z.string().brand("x"),
  refined: z.string().refine((x) => x !== "no"),
  nested: z.object({ list: z.array(z.object({ name: z.string(), tags: z.array(z.enum(["x", "y"])).max(2) })) }),
  lazy: (() => {
    const node = z.object({ v: z.number(), next: z.lazy(() => node.nullable()) });
    return node;
  })(),
  recursiveTree: (() => {
    const tree = z.object({ name: z.string(), children: z.array(z.lazy(() => tree)) });
    return tree;
  })(),
});

const onlyThree = (z) => ({
  record: z.record(z.number()),
  recordKeys: z.record(z.string().min(2), z.number()),
  recordEnum: z.record(z.enum(["a", "b"]), z.number()),
  recordRegex: z.record(z.string().regex(/^k\d+$/), z.string()),
  map: z.map(z.string(), z.number()),
  set: z.set(z.enum(["a", "b", "c"])),
  nativeEnum: z.nativeEnum({ A: "a", B: "b" }),
  ip: z.string().ip(),
  cidr: z.string().cidr(),
});

const onlyFour = (z) => ({
  record: z.record(z.string(), z.number()),
  recordKeys: z.record(z.string().min(2).max(8), z.number()),
  recordEnum: z.record(z.enum(["a", "b"]), z.number()),
  recordPartial: z.partialRecord(z.enum(["a", "b"]), z.number()),
  recordRegex: z.record(z.string().regex(/^k\d+$/), z.string()),
  recordEmail: z.record(z.email(), z.boolean()),
  int: z.int(),
  int32: z.int32(),
  uint32: z.uint32(),
  float32: z.float32(),
  guid: z.guid(),
  uuidv7: z.uuidv7(),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
  cidrv4: z.cidrv4(),
  base64url: z.base64url(),
  e164: z.e164(),
  isoDate: z.iso.date(),
  isoDatetime: z.iso.datetime({ precision: 3 }),
  isoTime: z.iso.time(),
  isoDuration: z.iso.duration(),
  xid: z.xid(),
  ksuid: z.ksuid(),
  hostname: z.hostname ? z.hostname() : z.string(),
  templateLiteral: z.templateLiteral(["v", z.number().int(), "-", z.enum(["a", "b"])]),
  strictObject: z.strictObject({ a: z.string() }),
  looseObject: z.looseObject({ a: z.string() }),
  literals: z.literal(["a", "b", 3, null]),
  json: z.json(),
  nullish: z.object({ a: z.string().nullish() }),
  getter: (() => {
    const node = z.object({ v: z.number(), get next() { return node.nullable(); } });
    return node;
  })(),
});

const sdks = (z) => ({
  person: z.object({ name: z.string(), age: z.number().int().min(0).max(150), email: z.string().email().nullable() }),
  steps: z.object({ steps: z.array(z.object({ explanation: z.string(), output: z.string() })), final: z.string() }),
  event: z.object({ when: z.string().datetime(), kind: z.enum(["a", "b"]), tags: z.array(z.string()).max(5) }),
  union: z.object({ item: z.union([z.object({ kind: z.literal("a"), x: z.string() }),
                                   z.object({ kind: z.literal("b"), y: z.array(z.number()) })]) }),
  tree: (() => {
    const node = z.object({ name: z.string(), children: z.array(z.lazy(() => node)) });
    return z.object({ root: node });
  })(),
});

for (const [name, type] of Object.entries({ ...common(three), ...onlyThree(three) })) {
  print("zod3/" + name, () => zodToJsonSchema(type));
  if (/^(record|map|set|nested|lazy|discriminated|intersection|regexAhead|email)/.test(name))
    print("zod3-openapi/" + name, () => zodToJsonSchema(type, { target: "openApi3" }));
}
for (const [name, type] of Object.entries({ ...common(four), ...onlyFour(four) })) {
  print("zod4/" + name, () => four.toJSONSchema(type));
  print("zod4-draft7/" + name, () => four.toJSONSchema(type, { target: "draft-7" }));
}
const openai = require("openai/helpers/zod");
for (const z of [three, four])
  for (const [name, type] of Object.entries(sdks(z))) {
    print("openai/" + name, () => openai.zodResponseFormat(type, "answer").json_schema.schema);
    print("openai-tool/" + name, () => openai.zodFunction({ name: "f", parameters: type }).function.parameters);
  }
const anthropic = require("@anthropic-ai/sdk/helpers/zod");
for (const [name, type] of Object.entries(sdks(four)))
  print("anthropic/" + name, () => anthropic.zodOutputFormat(type).schema);
