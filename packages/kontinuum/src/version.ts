/**
 * The version of the program. A release build writes its tag here; what runs from a work tree is `dev`.
 */

/** Version tag such as `v0.1.0`, or `dev`. */
export const version: string = "dev";
