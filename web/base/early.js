// Before anything is painted, so that a dark page is never white first.
try {
    const theme = localStorage.getItem("motet.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
    // a browser that keeps nothing: the system decides
}
