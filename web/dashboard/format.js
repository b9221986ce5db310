// Numbers and times as people read them. What is not known is a dash.

const NONE = "–";

/** Three digits that matter, and a letter for thousands and more. */
export function short(value) {
    if (value === null || value === undefined || Number.isNaN(value))
        return NONE;
    for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]])
        if (Math.abs(value) >= size)
            return `${digits(value / (size === 1e4 ? 1e3 : size))} ${unit}`;
    return digits(value);
}

function digits(value) {
    const size = Math.abs(value);
    return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
}

export function bytes(value) {
    if (value === null || value === undefined)
        return NONE;
    for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
        if (value >= size)
            return `${digits(value / size)} ${unit}`;
    return `${value} B`;
}

/** Seconds, as a length of time. */
export function span(seconds) {
    if (seconds === null || seconds === undefined || Number.isNaN(seconds))
        return NONE;
    if (seconds < 1)
        return `${digits(seconds * 1e3)} ms`;
    if (seconds < 60)
        return `${digits(seconds)} s`;
    const whole = Math.round(seconds);
    const [unit, large, small] = whole < 3600 ? [60, "min", "s"] : [3600, "h", "min"];
    const rest = Math.floor(whole % unit / (unit / 60));
    return `${Math.floor(whole / unit)} ${large}` + (rest > 0 ? ` ${rest} ${small}` : "");
}

export function percent(part, whole) {
    return whole > 0 ? `${Math.round(100 * part / whole)} %` : NONE;
}

/** Time of day; digits: of the second. */
export function clock(ms, fraction = 0) {
    const d = new Date(ms);
    const two = (n) => String(n).padStart(2, "0");
    const rest = fraction ? `.${String(d.getMilliseconds()).padStart(3, "0").slice(0, fraction)}` : "";
    return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${rest}`;
}

/** The next of 1, 2, 5, 10, ... times a power of ten that is not less. */
export function nice(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find((step) => step * power >= value * 0.999999);
}
