// Placeholder.
export default function () {}
