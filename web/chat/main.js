// The chat page: puts its parts together. session.js has the state, the other modules show it.

import {callJson, Refusal} from "../base/api.js";
import {announce, byId, icon} from "../base/dom.js";
import {startTheme} from "../base/theme.js";
import {startComposer} from "./composer.js";
import {startDrawers, toggleDrawer} from "./drawers.js";
import {startPanel} from "./panel.js";
import {on, session, start, tell} from "./session.js";
import {beginNew, startSidebar} from "./sidebar.js";
import {startTranscript} from "./transcript.js";

/* Encoders cannot be talked to. */
function talks({capabilities = []}) {
    return !capabilities.includes("embedding") && !capabilities.includes("rerank");
}

async function findModels() {
    for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
        try {
            const {data} = await callJson("v1/models");
            session.models = data.filter(talks).map((model) => model.id);
            tell("models");
            return;
        } catch (error) {
            if (error instanceof Refusal && error.status < 500) {
                tell("notice", error.message);
                return;
            }
        }
        await new Promise((resolve) => setTimeout(resolve, wait));
    }
}

function startNotices() {
    let timer = 0;
    on("notice", (text) => {
        byId("notice").textContent = text;
        byId("notice").hidden = false;
        announce(text);
        clearTimeout(timer);
        timer = setTimeout(() => {
            byId("notice").hidden = true;
        }, 8000);
    });
}

function startTitle() {
    const show = () => {
        const title = session.conversation.title;
        byId("title").textContent = title || "New conversation";
        document.title = title ? `${title} – motet` : "motet";
    };
    on("conversation", show);
    on("title", show);
}

function startKeys() {
    document.addEventListener("keydown", (event) => {
        if ((event.ctrlKey || event.metaKey) && event.key === "k") {
            event.preventDefault();
            if (byId("sidebar").hidden) toggleDrawer("sidebar");
            byId("search").focus();
        } else if (event.altKey && event.key === "n") {
            event.preventDefault();
            beginNew();
        }
    });
}

for (const [id, name] of [
    ["send", "send"],
    ["stop", "stop"],
    ["attach", "clip"],
    ["sketch", "edit"],
    ["to-end", "down"],
    ["dashboard", "chart"],
])
    byId(id).prepend(icon(name));
startTheme();
startNotices();
startDrawers();
startTitle();
startTranscript();
startComposer();
startPanel();
startSidebar();
startKeys();
await start();
tell("list");
findModels();
