// SPDX-License-Identifier: Apache-2.0
/* Load modules of the page into node, as one: TypeScript becomes JavaScript in memory. */
import { build } from "esbuild";

export async function load(...names) {
  const result = await build({
    stdin: {
      contents: names.map((name) => `export * from "./${name}";`).join("\n"), loader: "ts",
      resolveDir: new URL("../../src", import.meta.url).pathname,
    },
    bundle: true, write: false, format: "esm", target: "node20",
  });
  return import(`data:text/javascript;base64,${Buffer.from(result.outputFiles[0].text).toString("base64")}`);
}
