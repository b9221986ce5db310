// Formulas of chemistry (\ce) and units of measure (\si and its kin), as the TeX that means the same.

import {table} from "./symbols.js";

const ARROWS = {"->": "xrightarrow", "<-": "xleftarrow", "<->": "xleftrightarrow", "<=>": "xrightleftharpoons"};

/* What a formula is made of, in the order in which it is looked for. before: what stands before it. */
const PARTS = [
    [/\s*(<=>|<->|->|<-)(?:\[([^\]]*)\])?\s*/y, ([, sign, label]) => `\\${ARROWS[sign]}{${label ? chemistry(label) : "\\quad"}}`],
    [/([\^_])(?:\{([^{}]*)\}|([\d+-]+|\w))/y, ([, mark, group, one]) => `${mark}{\\mathrm{${group ?? one}}}`],
    [/\d+/y, ([digits], before) => (/[\w)\]}]/.test(before) ? `_{${digits}}` : `${digits}\\,`)],
    [/[+-](?=[\s),]|$)/y, ([sign], before) => (/[\w)\]}]/.test(before) ? `^{${sign}}` : ` ${sign} `)],
    [/[A-Za-z]+/y, ([letters]) => `\\mathrm{${letters}}`],
    [/\\[A-Za-z]+|[()[\],]/y, ([text]) => text],
    [/[*.]/y, () => "\\cdot "],
    [/\s*([=#+-])\s*/y, ([, bond]) => (bond === "#" ? "\\equiv " : ` ${bond} `)],
    [/\s+/y, () => " "],
];

/** Of "2H2 + O2 -> 2H2O" the TeX. */
export function chemistry(text) {
    let out = "";
    for (let at = 0; at < text.length;) {
        const before = text[at - 1] ?? " ";
        const [pattern, write] = PARTS.find(([each]) => ((each.lastIndex = at), each.test(text))) ?? [];
        if (!pattern) {
            out += /[{}]/.test(text[at]) ? "" : `\\text{${text[at]}}`;
            at++;
            continue;
        }
        pattern.lastIndex = at;
        out += write(pattern.exec(text), before);
        at = pattern.lastIndex;
    }
    return out;
}

const UNITS = table(`
metre=m meter=m second=s gram=g kilogram=kg ampere=A kelvin=K mole=mol candela=cd hertz=Hz newton=N pascal=Pa joule=J watt=W
coulomb=C volt=V farad=F ohm=Ω siemens=S tesla=T henry=H celsius=°C degreeCelsius=°C degree=° percent=% litre=L liter=L
minute=min hour=h day=d electronvolt=eV bar=bar radian=rad kilo=k mega=M giga=G tera=T hecto=h deci=d centi=c milli=m micro=µ
nano=n pico=p per=/ squared=² cubed=³ square=² cubic=³
`);

/** Of "\kilo\gram\per\second" or "m/s^2" the TeX. */
export function unit(text) {
    const named = text
        .replaceAll(/\\(square|cubic)\s*((?:\\[a-z]+)+?)(?=\\per|$)/gi, "$2\\$1")
        .replaceAll(/\\([A-Za-z]+)\s*/g, (whole, name) => UNITS.get(name) ?? name);
    return named
        .split(/(\^\{?-?\d+\}?)/)
        .map((part, i) => (i % 2 ? part : part && `\\text{${part.replaceAll(".", "·").replaceAll("~", " ")}}`))
        .join("");
}
