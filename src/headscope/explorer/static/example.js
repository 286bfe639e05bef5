/** The sentence that stands in the box before anything is typed. */

export const EXAMPLE = "The lawyer met the doctor because she needed advice.";
