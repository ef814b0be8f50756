// Applies the chosen theme and language before the first paint, so that nothing flashes. Without a choice, the theme is
// the system's, and the language is the first of the browser's that the page has. The choices are made in modules/theme.js
// and modules/messages.js.
{
  const root = document.documentElement;
  const stored = (name) => {
    try {
      return JSON.parse(localStorage.getItem(`translate.${name}`));
    } catch {
      return null; // without storage, or with another value in it
    }
  };
  const theme = stored("theme");
  if (theme) root.dataset.theme = theme;
  const languages = root.dataset.languages.split(" ");
  const wanted = [stored("interface"), ...navigator.languages].map((code) => String(code).split("-")[0]);
  root.lang = wanted.find((code) => languages.includes(code)) ?? languages[0];
}
