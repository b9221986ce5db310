// Hugging Face's own library for Node: reads the cache that motet wrote, and writes one for motet to read.
//   node cache.mjs PACKAGES scan CACHE            what it sees, as JSON
//   node cache.mjs PACKAGES download CACHE URL NAME
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, what, cacheDir, hubUrl, repo] = process.argv.slice(2);
const require = createRequire(packages + "/");
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")));

console.debug = () => {};
if (what === "scan") {
    const found = await hub.scanCacheDir(cacheDir);
    const repos = found.repos.map((r) => ({
        name: r.id.name,
        type: r.id.type,
        size: r.size,
        files: r.filesCount,
        revisions: r.revisions.map((v) => ({
            commit: v.commitOid,
            refs: v.refs,
            files: v.files.map((f) => ({ path: f.path, size: f.blob.size, blob: f.blob.path })),
        })),
    }));
    console.log(JSON.stringify({ repos, warnings: found.warnings.map(String) }));
} else {
    console.log(await hub.snapshotDownload({ repo, cacheDir, hubUrl }));
}
