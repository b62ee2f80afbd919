// What the frontend's JavaScript is held to; types are TypeScript's to check (tsconfig.json).
import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-else-return": "error",
      "no-implicit-coercion": "error",
      "no-new-wrappers": "error",
      "no-param-reassign": "error",
      "no-shadow-restricted-names": "error",
      "no-throw-literal": "error",
      "no-unneeded-ternary": "error",
      "no-unused-vars": ["error", { args: "after-used", caughtErrors: "all", ignoreRestSiblings: true }],
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-useless-rename": "error",
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-arrow-callback": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "prefer-rest-params": "error",
    },
  },
  // Data are imported with an attribute of 2025, which our bundles don't have: browsers get the data themselves.
  { files: ["transformer/frontend/page/*.js", "pages/ui/host/*.js", "transformer/frontend/intervention_codes.js"], languageOptions: { ecmaVersion: 2025 } },
  { files: ["tests/**"], languageOptions: { globals: globals.nodeBuiltin } },
];
