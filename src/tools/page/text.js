// SPDX-License-Identifier: BSD-2-Clause
// Figures in words, and elements. Text of a recording becomes text nodes here, nothing else.

function element(name, attributes, ...children) {
    const made = document.createElement(name);

    for (const [key, value] of Object.entries(attributes || {})) {
        if (key === "class")
            made.className = value;
        else if (key.startsWith("on"))
            made.addEventListener(key.slice(2), value);
        else if (value === true)
            made.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined)
            made.setAttribute(key, value);
    }
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
}

// A name from outside: its direction is its own.
function named(text) {
    return element("bdi", {}, text || "[no name]");
}

function threeDigits(value) {
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function formatTime(ns) {
    const sign = ns < 0 ? "-" : "", size = Math.abs(ns);

    if (!size)
        return "0";
    for (const [unit, scale] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
        if (size >= scale * 0.9995)
            return sign + threeDigits(size / scale) + " " + unit;
    }
    return sign + Math.round(size) + " ns";
}

function formatCount(number) {
    return Math.round(number).toLocaleString("en");
}

function formatExact(number, unit) {
    return formatCount(number) + (unit ? " " + unit : "");
}

function formatShare(part, whole) {
    const percent = whole ? 100 * part / whole : 0;

    if (!whole)
        return "-";
    if (percent && Math.abs(percent) < 0.1)
        return "< 0.1 %";
    return (Math.abs(percent) < 10 ? percent.toFixed(1) : percent.toFixed(0)) + " %";
}

function countOf(number, word, words) {
    return formatCount(number) + " " + (number === 1 ? word : words || word + "s");
}

// A moment, as seconds from the recording's start.
function formatMoment(ns, span) {
    const digits = span < 1e6 ? 9 : span < 1e9 ? 6 : span < 1e11 ? 4 : 2;

    return (ns / 1e9).toFixed(digits) + " s";
}

// A first letter in capitals.
function sentence(words) {
    return words.charAt(0).toUpperCase() + words.slice(1);
}
