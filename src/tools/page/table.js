// SPDX-License-Identifier: BSD-2-Clause
// A table that sorts by its headings. A column: {title, value(row), show(row), number, exact(row), extra: left out where the
// page is narrow}.

const ROWS_AT_ONCE = 200, textOrder = new Intl.Collator();

function classOf(column, usual) {
    return (column.number ? "number" : usual) + (column.extra ? " extra" : "");
}

function extra(column) {
    return {...column, extra: true};
}

function cellOf(column, row) {
    const value = column.value(row), cell = element("td", {class: classOf(column, "name")});

    cell.append(column.show ? column.show(row) : column.number ? formatCount(value) : named(String(value)));
    if (column.number) {
        cell.dataset.value = value;
        cell.title = column.exact ? column.exact(row) : formatExact(value);
    }
    return cell;
}

// {rows, columns, sort: column index, down, caption, detail(row): element of an opened row,
// shown: how many rows at first, memory: an object that keeps order and opened rows for the next table of the kind}
function makeTable(options) {
    const state = options.memory || {};

    if (state.sort === undefined)
        Object.assign(state, {sort: options.sort || 0, down: options.down !== false, shown: options.shown || ROWS_AT_ONCE, open: new Set()});
    const body = element("tbody"), headings = element("tr");
    const more = element("button", {type: "button", onclick: () => {
        state.shown *= 10;
        fill();
    }});
    const note = element("p", {class: "note"}, more);
    const table = element("table", {}, options.caption ? element("caption", {class: "note"}, options.caption) : null,
                          element("thead", {}, headings), body);

    // Each row's value is asked for once.
    function sorted() {
        if (state.sort < 0)
            return options.rows; // as they come
        const column = options.columns[state.sort], keys = options.rows.map(column.value), sign = state.down ? -1 : 1;
        const compare = typeof keys[0] === "number" ? (a, b) => keys[a] - keys[b]
            : (a, b) => textOrder.compare(keys[a], keys[b]);

        return keys.map((key, index) => index).sort((a, b) => sign * compare(a, b)).map(index => options.rows[index]);
    }

    function sortBy(index) {
        state.down = state.sort === index ? !state.down : !!options.columns[index].number;
        state.sort = index;
        fill();
        headings.querySelectorAll("button")[index].focus();
    }

    function toggle(row, key) {
        state.open.has(key) ? state.open.delete(key) : state.open.add(key);
        fill();
        body.querySelector(`button[data-key="${CSS.escape(key)}"]`).focus();
    }

    function fillRow(row) {
        const line = element("tr"), key = options.detail ? options.key(row) : "";

        if (options.detail) {
            line.append(element("td", {}, element("button", {
                type: "button", class: "open", "data-key": key, "aria-expanded": String(state.open.has(key)),
                "aria-label": "Details of " + options.label(row), onclick: () => toggle(row, key)},
                state.open.has(key) ? "−" : "+")));
        }
        for (const column of options.columns)
            line.append(cellOf(column, row));
        body.append(line);
        if (options.detail && state.open.has(key)) {
            line.className = "chosen";
            body.append(element("tr", {class: "detail"},
                element("td", {colspan: options.columns.length + 1}, options.detail(row))));
        }
    }

    function fill() {
        const rows = sorted();

        headings.replaceChildren();
        if (options.detail)
            headings.append(element("th", {}));
        options.columns.forEach((column, index) => {
            const sorted = state.sort === index;

            headings.append(element("th", {
                class: classOf(column, ""), scope: "col", title: column.hint || null,
                "aria-sort": sorted ? (state.down ? "descending" : "ascending") : null},
                element("button", {type: "button", onclick: () => sortBy(index)},
                        column.title + (sorted ? (state.down ? " ▾" : " ▴") : ""))));
        });
        body.replaceChildren();
        rows.slice(0, state.shown).forEach(fillRow);
        note.hidden = rows.length <= state.shown;
        more.textContent = `${formatCount(state.shown)} of ${formatCount(rows.length)} rows are shown: show more`;
    }

    fill();
    return element("div", {}, element("div", {class: "scroll"}, table), note);
}

function timeColumn(title, value, hint) {
    return {title, value, hint, number: true, show: row => formatTime(value(row)),
            exact: row => formatExact(value(row), "ns")};
}

function countColumn(title, value, hint) {
    return {title, value, hint, number: true};
}

function shareColumn(title, value, whole, hint) {
    return {title, value, hint, number: true, show: row => formatShare(value(row), whole),
            exact: row => formatExact(value(row), "ns")};
}

// A number that names something.
function idColumn(title, value) {
    return {title, value, number: true, show: row => String(value(row)), exact: row => String(value(row))};
}
