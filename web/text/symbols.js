// Names of TeX and the characters they stand for.

/** A map from lines of "name=value". */
export function table(text) {
    return new Map(
        text
            .trim()
            .split(/[ \n]+/)
            .map((pair) => {
                const at = pair.indexOf("=");
                return [pair.slice(0, at), pair.slice(at + 1)];
            }),
    );
}

/** Letters: set as identifiers. */
export const LETTERS = table(`
alpha=α beta=β gamma=γ delta=δ epsilon=ϵ varepsilon=ε zeta=ζ eta=η theta=θ vartheta=ϑ iota=ι kappa=κ lambda=λ mu=μ
nu=ν xi=ξ pi=π varpi=ϖ rho=ρ varrho=ϱ sigma=σ varsigma=ς tau=τ upsilon=υ phi=ϕ varphi=φ chi=χ psi=ψ omega=ω
Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ Xi=Ξ Pi=Π Sigma=Σ Upsilon=Υ Phi=Φ Psi=Ψ Omega=Ω
ell=ℓ hbar=ℏ imath=ı jmath=ȷ Re=ℜ Im=ℑ wp=℘ aleph=ℵ infty=∞ partial=∂ nabla=∇ emptyset=∅ varnothing=∅ top=⊤ bot=⊥
angle=∠ degree=° prime=′ ldots=… dots=… dotsc=… cdots=⋯ dotsb=⋯ vdots=⋮ ddots=⋱ checkmark=✓ square=□ Box=□ triangle=△ varkappa=ϰ digamma=ϝ beth=ℶ gimel=ℷ daleth=ℸ hslash=ℏ eth=ð mho=℧ complement=∁
blacksquare=■ blacktriangle=▲ bigstar=★ lozenge=◊ Diamond=◇ sharp=♯ flat=♭ natural=♮ clubsuit=♣ diamondsuit=♢ heartsuit=♡
spadesuit=♠ copyright=© pounds=£ S=§ P=¶ AA=Å aa=å ss=ß o=ø O=Ø ae=æ AE=Æ dotsi=⋯ dotsm=⋯ iddots=⋰ measuredangle=∡ surd=√ Bbbk=𝕜
varGamma=𝛤 varDelta=𝛥 varTheta=𝛩 varLambda=𝛬 varSigma=𝛴 varPhi=𝛷 varPsi=𝛹 varOmega=𝛺 textdegree=° textmu=µ dag=† ddag=‡ euro=€
`);

/** Operators and relations. */
export const OPERATORS = table(`
times=× div=÷ cdot=⋅ pm=± mp=∓ ast=∗ star=⋆ circ=∘ bullet=∙ oplus=⊕ ominus=⊖ otimes=⊗ odot=⊙ wedge=∧ land=∧ vee=∨ lor=∨
cap=∩ cup=∪ setminus=∖ neg=¬ lnot=¬ dagger=† le=≤ leq=≤ leqslant=⩽ ge=≥ geq=≥ geqslant=⩾ ne=≠ neq=≠ equiv=≡ approx=≈
sim=∼ simeq=≃ cong=≅ propto=∝ ll=≪ gg=≫ prec=≺ succ=≻ in=∈ ni=∋ notin=∉ subset=⊂ supset=⊃ subseteq=⊆ supseteq=⊇
mid=∣ parallel=∥ perp=⊥ vdash=⊢ models=⊨ forall=∀ exists=∃ nexists=∄ therefore=∴ because=∵ colon=: coloneqq=≔
to=→ rightarrow=→ leftarrow=← gets=← leftrightarrow=↔ Rightarrow=⇒ implies=⟹ Leftarrow=⇐ Leftrightarrow=⇔ iff=⟺
longrightarrow=⟶ longleftarrow=⟵ mapsto=↦ uparrow=↑ downarrow=↓ hookrightarrow=↪ rightharpoonup=⇀ rightleftharpoons=⇌
lt=< gt=> nless=≮ ngtr=≯ nleq=≰ ngeq=≱ lneq=⪇ gneq=⪈ nsim=≁ ncong=≇ nmid=∤ nparallel=∦ nsubseteq=⊈ nsupseteq=⊉
subsetneq=⊊ supsetneq=⊋ Subset=⋐ Supset=⋑ sqsubseteq=⊑ sqsupseteq=⊒ lesssim=≲ gtrsim=≳ lessgtr=≶ approxeq=≊ preceq=⪯
succeq=⪰ preccurlyeq=≼ succcurlyeq=≽ lhd=⊲ rhd=⊳ triangleleft=◁ triangleright=▷ trianglelefteq=⊴ trianglerighteq=⊵
bowtie=⋈ dashv=⊣ Vdash=⊩ vDash=⊨ nvdash=⊬ nvDash=⊭ uplus=⊎ sqcap=⊓ sqcup=⊔ amalg=⨿ wr=≀ diamond=⋄ ddagger=‡ oslash=⊘
boxplus=⊞ boxtimes=⊠ ltimes=⋉ rtimes=⋊ smallsetminus=∖ veebar=⊻ barwedge=⊼ Uparrow=⇑ Downarrow=⇓ updownarrow=↕ nearrow=↗
searrow=↘ swarrow=↙ nwarrow=↖ hookleftarrow=↩ Longrightarrow=⟹ Longleftarrow=⟸ Longleftrightarrow=⟺ impliedby=⟸
longleftrightarrow=⟷ longmapsto=⟼ leftharpoonup=↼ leftharpoondown=↽ rightharpoondown=⇁ leftrightharpoons=⇋
rightleftarrows=⇄ leadsto=⇝ rightsquigarrow=⇝ twoheadrightarrow=↠ nrightarrow=↛ nRightarrow=⇏ nleftarrow=↚ varpropto=∝
eqqcolon=≕ Coloneqq=⩴ vcentcolon=: owns=∋ smile=⌣ frown=⌢ gg=≫ lll=⋘ ggg=⋙ between=≬ pitchfork=⋔
upharpoonright=↾ restriction=↾ upharpoonleft=↿ doteq=≐ triangleq=≜ asymp=≍ bmod=mod
`);

/** Operators that stand large, with their limits above and below where there is room. */
export const LARGE = table(`
sum=∑ prod=∏ coprod=∐ bigcup=⋃ bigcap=⋂ bigoplus=⨁ bigotimes=⨂ bigvee=⋁ bigwedge=⋀ bigodot=⨀ biguplus=⨄ bigsqcup=⨆
`);
export const INTEGRALS = table("int=∫ iint=∬ iiint=∭ oint=∮ iiiint=⨌ oiint=∯ smallint=∫ fint=⨍");

/** Functions, set upright; those of the second have limits below. */
export const FUNCTIONS = new Set(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh exp log ln lg deg dim ker arg hom sech csch arccot sgn tr rank diag erf mod".split(" "),
);
export const LIMITS = new Set("lim limsup liminf varliminf varlimsup injlim projlim max min sup inf argmax argmin det gcd Pr".split(" "));

/** Brackets by name. */
export const FENCES = table(`
langle=⟨ rangle=⟩ lfloor=⌊ rfloor=⌋ lceil=⌈ rceil=⌉ lbrace={ rbrace=} lbrack=[ rbrack=] lvert=| rvert=| vert=|
lVert=‖ rVert=‖ Vert=‖ backslash=\\ lgroup=⟮ rgroup=⟯ llbracket=⟦ rrbracket=⟧ ulcorner=⌜ urcorner=⌝ uparrow=↑ downarrow=↓
`);

/** What stands over a letter. */
export const ACCENTS = table(`
hat=^ widehat=^ bar=¯ overline=¯ vec=→ overrightarrow=→ dot=˙ ddot=¨ tilde=~ widetilde=~ check=ˇ breve=˘ acute=´ grave=\` overleftarrow=← overleftrightarrow=↔ mathring=˚ dddot=⃛ overparen=⏜ wideparen=⏜
`);

/** Blanks, in em. */
export const SPACES = new Map([
    [",", 0.167],
    [":", 0.222],
    [">", 0.222],
    [";", 0.278],
    ["!", -0.167],
    [" ", 0.25],
    ["quad", 1],
    ["qquad", 2],
    ["enspace", 0.5],
    ["thinspace", 0.167],
    ["medspace", 0.222],
    ["thickspace", 0.278],
    ["negthinspace", -0.167],
    ["nobreakspace", 0.25],
    ["enskip", 0.5],
    ["space", 0.25],
]);

const STYLES = {
    mathbb: [0x1d538, 0x1d552, 0x1d7d8],
    mathbf: [0x1d400, 0x1d41a, 0x1d7ce],
    boldsymbol: [0x1d400, 0x1d41a, 0x1d7ce],
    mathcal: [0x1d49c, 0x1d4b6, 0],
    mathscr: [0x1d49c, 0x1d4b6, 0],
    mathfrak: [0x1d504, 0x1d51e, 0],
    mathsf: [0x1d5a0, 0x1d5ba, 0x1d7e2],
    mathtt: [0x1d670, 0x1d68a, 0x1d7f6],
};
const ALIKE = {bm: "boldsymbol", bold: "boldsymbol", pmb: "boldsymbol", Bbb: "mathbb", mathds: "mathbb", mathbbm: "mathbb", frak: "mathfrak", cal: "mathcal"};
const OLDER = {
    mathbb: {C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ"},
    mathcal: {B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ", g: "ℊ", o: "ℴ"},
    mathfrak: {C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ"},
};

/** Letters in a style by name, or null where there is none of that name. */
export function styled(name, text) {
    name = ALIKE[name] ?? name;
    const starts = STYLES[name];
    if (!starts) return null;
    const older = OLDER[name === "mathscr" ? "mathcal" : name] ?? {};
    return [...text]
        .map((c) => {
            const [start, first] = /[A-Z]/.test(c)
                ? [starts[0], 65]
                : /[a-z]/.test(c)
                  ? [starts[1], 97]
                  : [starts[2], 48];
            return (
                older[c] ??
                (/[A-Za-z0-9]/.test(c) && start ? String.fromCodePoint(start + c.codePointAt(0) - first) : c)
            );
        })
        .join("");
}
