// What Cohere's own SDK makes of /v2/embed, /v1/rerank and /v2/rerank. usage: node sdk_cohere.mjs PACKAGES URL
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

const [packages, url] = process.argv.slice(2);
const { CohereClient, CohereClientV2, CohereError } = createRequire(path.join(packages, "x.js"))("cohere-ai");
const options = { token: "secret", environment: url };
const query = "where does the river meet the sea?";
const documents = ["at the old harbour", "fox", "a query asks"];
const model = "xlmr-rerank-bf16";

const checks = {
  async "the second version"() {
    const answer = await new CohereClientV2(options).rerank({ model, query, documents, topN: 2, maxTokensPerDoc: 100 });
    assert.deepEqual(answer.results.map((r) => r.index), [0, 2]);
    assert.ok(answer.results.every((r) => r.relevanceScore > 0 && r.relevanceScore < 1));
    assert.equal(answer.meta.apiVersion.version, "2");
    assert.equal(answer.meta.billedUnits.searchUnits, 1);
    assert.ok(answer.id && answer.meta.tokens.inputTokens > 0);
  },
  async "a document that is too long"() {
    const long = "fox ".repeat(1000);
    const answer = await new CohereClientV2(options).rerank({ model, query, documents: [long, "fox"] });
    assert.equal(answer.results.length, 2);
  },
  async "the first version, with documents"() {
    const answer = await new CohereClient(options).rerank({
      model, query, documents: documents.map((text) => ({ text })), returnDocuments: true });
    assert.equal(answer.results.length, 3);
    assert.equal(answer.results[0].document.text, documents[answer.results[0].index]);
  },
  async "the first version, without"() {
    const answer = await new CohereClient(options).rerank({ model, query, documents, topN: 1, returnDocuments: false });
    assert.deepEqual(answer.results.map((r) => [r.index, r.document]), [[0, undefined]]);
  },
  async "embeddings"() {
    const answer = await new CohereClientV2(options).embed({
      model: "bert-mean-f32", texts: ["fox", "dog"], inputType: "search_query", embeddingTypes: ["float", "binary"] });
    assert.deepEqual(answer.embeddings.float.map((v) => v.length), [32, 32]);
    assert.deepEqual(answer.embeddings.binary.map((v) => v.length), [4, 4]);
    assert.equal(answer.meta.billedUnits.inputTokens, 6);
  },
  async "an error"() {
    await assert.rejects(new CohereClientV2(options).rerank({ model: "nobody", query, documents }),
      (e) => e instanceof CohereError && e.statusCode === 404);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
  } catch (error) {
    failed++;
    console.log(`${name}: ${error.stack}`);
  }
}
console.log(`api_sdk_cohere: ${Object.keys(checks).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
