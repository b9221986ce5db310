// Validates texts for schema.py: a line {"schema": S, "texts": [...]} is answered by {"valid": [...]}, or by
// {"error": ...} where the schema itself is not taken.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const Ajv = require("ajv/dist/2020");
const formats = require("ajv-formats");

for await (const line of createInterface({ input: process.stdin })) {
  const { schema, texts } = JSON.parse(line);
  let out;
  try {
    const ajv = new Ajv({ strict: false, ownProperties: true, validateSchema: false, logger: false,
                          multipleOfPrecision: 9 });
    formats(ajv);
    const validate = ajv.compile(schema);
    out = { valid: texts.map((text) => { try { return validate(JSON.parse(text)); } catch { return false; } }) };
  } catch (error) {
    out = { error: String(error) };
  }
  console.log(JSON.stringify(out));
}
