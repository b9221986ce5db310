import {startTheme} from "../base/theme.js";

startTheme();
