// SPDX-License-Identifier: BSD-2-Clause
// A server that starts a program for each request and waits for it, on the only thread it has.
const {execFileSync} = require("child_process");

function makeThumbnail() {
    execFileSync("sleep", ["0.2"]);
}

console.log("ready");
(function serve() {
    makeThumbnail();
    setImmediate(serve);
})();
