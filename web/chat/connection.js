// Whether there is a connection to the server, said once for the whole page. While there is none nothing looks as if it
// worked.

import {reconnected, tryNow, whenConnected} from "../base/api.js";
import {announce, byId, h} from "../base/dom.js";

export function startConnection() {
    byId("connection").append(
        h("span", {}, "Lost the server, trying again …"),
        h("button", {type: "button", onclick: tryNow}, "Try now"),
    );
    window.addEventListener("offline", () => reconnected());
    window.addEventListener("online", tryNow);
    whenConnected((there) => {
        byId("connection").hidden = there;
        document.body.classList.toggle("lost", !there);
        announce(there ? "The server is back." : "Lost the server, trying again.");
    });
}
