// What went wrong, in words for people, and what can be done about it. The server's own words stand below, folded away.

import {ToolTrouble} from "./mcp.js";

/* Where a fault lies that a setting has made. */
const SETTINGS = /^(?:tools|text|response_format|temperature|top_|min_p|seed|stop|max_|.*penalty|instructions|include)/;

/** {text, details, acts}: acts are names of what may be tried: "again", "new", "key", "model", "settings", "edit". */
export function explained(fault, said) {
    const {status = 0, code = null, parameter = null} = fault ?? {};
    if (fault?.own) return {text: said, details: null, acts: ["settings", "again"]};
    const details = said?.replace(/^(?:\w+(?:\[\d+\])?\.?)+: /, "") ?? null;
    const about = (text, ...acts) => ({text, details, acts});
    if (fault?.lost) return {...about("The server could not be reached.", "again"), details: null};
    if (status === 401) return about("This server wants a key that it knows.", "key");
    if (status === 403) return about("Your key does not allow this.", "key");
    if (code === "model_not_found") return about("The server does not have this model.", "model");
    if (status === 404) return about("The server no longer knows this answer: it may have been started anew.", "again");
    if (status === 413) return about("The question with its pictures is larger than the server takes.", "edit", "new");
    if (code === "context_length_exceeded" || /context|too long/i.test(said ?? ""))
        return about("The conversation is longer than the model can read.", "new", "edit");
    if (status === 429) return about("Too much is asked of the server at the moment.", "again");
    if (status === 503) return about("The server is busy, or the model is being loaded.", "again");
    if (status === 504) return about("The answer took longer than the server allows.", "again");
    if (status >= 500) return about("Something went wrong in the server.", "again");
    if (status >= 400 && SETTINGS.test(parameter ?? "")) return about("The server cannot use one of the settings.", "settings");
    if (status >= 400) return about("The server cannot use what was sent.", "edit", "again");
    return about("The answer could not be finished.", "again");
}

/** What to keep of an error in a message. */
export function faultOf(error) {
    return {
        own: error instanceof ToolTrouble,
        lost: error.name === "Error" && error.status === undefined,
        status: error.status ?? 0,
        code: error.code ?? null,
        parameter: error.parameter ?? null,
    };
}
