// What the clients' scripts share. Each is run as: node NAME.mjs PACKAGES URL PICTURE [MAJOR]
// PACKAGES is the folder whose node_modules holds the clients; URL is a motet server with a replay checkpoint. MAJOR is
// a major version before the newest, by which the packages are installed under other names (EARLIER in run.py).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const [packages, url, picture, major] = process.argv.slice(2);
export const base64 = readFileSync(picture).toString("base64");
export const dataUrl = "data:image/png;base64," + base64;
const require = createRequire(pathToFileURL(packages + "/"));

// Packages that can only be imported do not resolve as others do.
const resolve = (name) => {
  try {
    return require.resolve(name);
  } catch (error) {
    if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error;
    const folder = `${packages}/node_modules/${name}`;
    return `${folder}/${JSON.parse(readFileSync(folder + "/package.json")).exports["."].import}`;
  }
};
export const load = async (name) => import(pathToFileURL(resolve(major ? `${name}-${major}` : name)));

// Long enough that what is shared is most of the prompt.
export const system = "You are a helpful assistant. " +
  Array.from({ length: 200 }, (_, i) => `Rule ${i} is that an answer should be short and right.`).join(" ");
export const task = "replay:weather What will the weather be in Paris?";
export const answer = "It will be sunny in your picture, too."; // "in Paris" where the picture did not arrive
export const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
export const call = { city: "Paris", days: 3 };
export const result = "sunny, 21 degrees";

// The second turn begins with all of the first one's prompt but its last few tokens.
export const cached = (first, second, fromCache) => {
  assert.ok(second > first, `the second prompt has ${second} tokens, the first ${first}`);
  assert.ok(fromCache >= 0.95 * first, `${fromCache} of ${first} shared tokens came from the cache`);
};
export { assert };
